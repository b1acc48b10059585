/** The requests that the page knows: the list of the gateway, kept up to date by its live changes. */

import { askJson } from "./api.js";

const PAGE = 500;
const MOST_ASKED = 1000;
const REFRESH_MS = 600;

/**
 * `rows` are summaries, newest first, so far as they are loaded; `matching` of `total` pass the filter. `held` are
 * changes that wait while the list is paused, and `stale`: it has to be loaded then. `keep` is how many the gateway
 * keeps, and so the page. `filter` is the one that was asked for last, and `listed` that of the rows (null: none are
 * loaded yet): the gateway may refuse a filter. `words` are those that it searches, and `reveal`: the words of requests
 * are asked for. `onChange` is called after each change.
 *
 * The gateway alone knows the language of the filter: while there is one, a new request makes the list be asked for
 * again, and the changes themselves only update rows that are shown.
 */
export class Requests {
  constructor(keep, onChange) {
    this.keep = keep;
    this.onChange = onChange;
    this.rows = [];
    this.byId = new Map();
    this.matching = 0;
    this.total = 0;
    this.filter = "";
    this.listed = null;
    this.words = [];
    this.reveal = false;
    this.error = null;
    this.loaded = false;
    this.paused = false;
    this.held = new Map();
    this.stale = false;
    this.asked = 0;
    this.refreshing = null;
  }

  /**
   * Loads the newest requests that pass `filter`. Rows of the same filter stay until what is newer reaches them; `anew`:
   * none does.
   */
  async load(filter = this.filter, anew = false) {
    const known = filter === this.filter ? this.rows : [];
    const before = anew ? [] : known;
    this.filter = filter;
    const asked = (this.asked += 1);
    try {
      const limit = Math.min(Math.max(PAGE, known.length), MOST_ASKED);
      const page = await this.ask({ filter, limit });
      const rows = await this.joined(page, before, asked);
      if (asked !== this.asked) return;
      this.replace(rows, page);
      this.listed = filter;
      this.words = page.words;
      this.error = null;
    } catch (error) {
      if (asked !== this.asked) return;
      this.error = error;
    }
    this.loaded = true;
    this.onChange();
  }

  ask(query) {
    return askJson("requests", { query: { ...query, reveal: this.reveal ? 1 : null } });
  }

  /** Shows the words of the requests from now on, or hides them: every row is then loaded anew. */
  show(reveal) {
    if (this.reveal === reveal) return;
    this.reveal = reveal;
    if (this.loaded) this.load(this.filter, true);
  }

  /** Returns the rows of a page, of those between it and the newest of `before`, and of `before` behind them. */
  async joined({ requests, matching }, before, asked) {
    const rows = dated(requests);
    const isApart = () => rows.length > 0 && rows.length < matching && rows.at(-1).seq > before[0]?.seq;
    while (isApart() && rows.length < this.keep && asked === this.asked) {
      const query = { filter: this.filter, limit: MOST_ASKED, before: rows.at(-1).seq };
      const page = await this.ask(query);
      if (page.requests.length === 0) break;
      rows.push(...dated(page.requests));
    }
    const oldest = rows.at(-1)?.seq ?? 0;
    const behind = before.filter((row) => row.seq < oldest);
    return [...rows, ...behind].slice(0, Math.max(rows.length, Math.min(matching, this.keep)));
  }

  /** Loads the requests before the oldest row. */
  async loadOlder() {
    const oldest = this.rows.at(-1);
    if (this.loadingOlder || oldest === undefined || this.rows.length >= this.matching) return;
    this.loadingOlder = true;
    const asked = this.asked;
    try {
      const query = { filter: this.filter, limit: PAGE, before: oldest.seq };
      const page = await this.ask(query);
      if (asked === this.asked) this.append(dated(page.requests));
    } catch (error) {
      this.error = error;
    } finally {
      this.loadingOlder = false;
      this.onChange();
    }
  }

  /** Takes the changes of one frame. */
  take(changes) {
    if (changes.some((change) => change.event === "missed")) this.refresh();
    const summaries = changes.filter((change) => change.event !== "missed").map((change) => change.data);
    if (this.paused) this.hold(summaries);
    else this.update(summaries);
    this.onChange();
  }

  /** Stops or goes on; what came meanwhile is then shown. */
  pause(paused) {
    this.paused = paused;
    const held = [...this.held.values()];
    this.held.clear();
    if (this.stale) this.reload();
    else this.update(held);
    this.onChange();
  }

  // Of more than the gateway keeps, the oldest are gone by now.
  hold(summaries) {
    for (const summary of summaries) {
      this.held.delete(summary.id);
      this.held.set(summary.id, summary);
    }
    for (const id of this.held.keys()) {
      if (this.held.size <= this.keep) break;
      this.held.delete(id);
      this.stale = true;
    }
  }

  /** Loads the list again; while it is paused, as soon as it goes on. */
  reload() {
    this.stale = this.paused;
    if (!this.paused) this.load();
  }

  /** Forgets all rows that have ended. */
  clear() {
    this.replace(
      this.rows.filter((summary) => summary.live),
      { matching: 0, total: 0 },
    );
    this.refresh();
    this.onChange();
  }

  /** Asks for the list again, at most about twice a second. */
  refresh() {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = null;
      this.reload();
    }, REFRESH_MS);
  }

  update(summaries) {
    const received = performance.now();
    const news = new Map(summaries.map((summary) => [summary.id, { ...summary, received }]));
    if (news.size === 0) return;
    if (this.filter) this.refresh();
    // What is older than the rows that are loaded is loaded with them.
    const oldest = this.rows.length < this.matching ? (this.rows.at(-1)?.seq ?? 0) : 0;
    const isAdded = (summary) => !this.filter && !this.byId.has(summary.id) && summary.seq > oldest;
    const added = [...news.values()].filter(isAdded);
    const rows = [...added, ...this.rows.map((row) => news.get(row.id) ?? row)].sort((a, b) => b.seq - a.seq);
    const grown = (count) => Math.min(count + added.length, Math.max(count, this.keep));
    this.replace(rows.slice(0, this.keep), { matching: grown(this.matching), total: grown(this.total) });
  }

  replace(rows, { matching, total }) {
    // A client may choose the id of its request, and two may choose the same one: the newer request has it.
    this.byId = new Map(rows.toReversed().map((row) => [row.id, row]));
    this.rows = rows.filter((row) => this.byId.get(row.id) === row);
    this.matching = matching;
    this.total = total;
  }

  append(rows) {
    const older = rows.filter((row) => !this.byId.has(row.id));
    older.forEach((row) => this.byId.set(row.id, row));
    this.rows = [...this.rows, ...older];
    if (older.length === 0) this.matching = this.rows.length;
  }
}

// Summaries with the time at which the page got them.
function dated(summaries) {
  const received = performance.now();
  return summaries.map((summary) => ({ ...summary, received }));
}

/** Milliseconds that a request has taken: of a live one up to now, by the page's clock since the last news of it. */
export function taken(summary) {
  return summary.live ? summary.ms + performance.now() - summary.received : summary.ms;
}
