/** The requests that the page knows: the list of the gateway, kept up to date by its live changes. */

import { askJson } from "./api.js";

const PAGE = 500;
const MOST_ASKED = 1000;
const REFRESH_MS = 600;

/**
 * `rows` are summaries, newest first, so far as they are loaded; `matching` of `total` pass the filter. `held` are
 * changes that wait while the list is paused. `keep` is how many the gateway
 * keeps, and so the page. `onChange` is called after each change.
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
    this.error = null;
    this.loaded = false;
    this.paused = false;
    this.held = new Map();
    this.asked = 0;
    this.refreshing = null;
  }

  /** Loads the newest requests that pass `filter`. */
  async load(filter = this.filter) {
    this.filter = filter;
    const asked = (this.asked += 1);
    try {
      const limit = Math.min(Math.max(PAGE, this.rows.length), MOST_ASKED);
      const page = await askJson("requests", { query: { filter, limit } });
      if (asked !== this.asked) return;
      this.replace(page.requests, page);
      this.error = null;
    } catch (error) {
      if (asked !== this.asked) return;
      this.error = error;
    }
    this.loaded = true;
    this.onChange();
  }

  /** Loads the requests before the oldest row. */
  async loadOlder() {
    const oldest = this.rows.at(-1);
    if (this.loadingOlder || oldest === undefined || this.rows.length >= this.matching) return;
    this.loadingOlder = true;
    const asked = this.asked;
    try {
      const query = { filter: this.filter, limit: PAGE, before: oldest.seq };
      const page = await askJson("requests", { query });
      if (asked === this.asked) this.append(page.requests);
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
    if (this.paused) summaries.forEach((summary) => this.held.set(summary.id, summary));
    else this.update(summaries);
    this.onChange();
  }

  /** Stops or goes on; what came meanwhile is then shown. */
  pause(paused) {
    this.paused = paused;
    const held = [...this.held.values()];
    this.held.clear();
    this.update(held);
    this.onChange();
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
      this.load();
    }, REFRESH_MS);
  }

  update(summaries) {
    const now = performance.now();
    for (const summary of summaries) summary.received = now;
    const known = summaries.filter((summary) => this.byId.has(summary.id));
    const added = [
      ...new Map(summaries.filter((summary) => !this.byId.has(summary.id)).map((one) => [one.id, one])).values(),
    ];
    known.forEach((summary) => this.byId.set(summary.id, summary));
    if (this.filter && summaries.length > 0) this.refresh();
    else added.forEach((summary) => this.byId.set(summary.id, summary));
    if (known.length > 0) this.rows = this.rows.map((row) => this.byId.get(row.id));
    if (!this.filter && added.length > 0) {
      this.rows = [...added.reverse(), ...this.rows];
      for (const old of this.rows.splice(this.keep)) this.byId.delete(old.id);
      this.total = Math.min(this.total + added.length, this.keep);
      this.matching = this.total;
    }
  }

  replace(rows, { matching, total }) {
    const now = performance.now();
    for (const row of rows) row.received = now;
    this.rows = rows;
    this.byId = new Map(rows.map((row) => [row.id, row]));
    this.matching = matching;
    this.total = total;
  }

  append(rows) {
    const older = rows.filter((row) => !this.byId.has(row.id)).map((row) => ({ ...row, received: performance.now() }));
    older.forEach((row) => this.byId.set(row.id, row));
    this.rows = [...this.rows, ...older];
    if (older.length === 0) this.matching = this.rows.length;
  }
}

/** Milliseconds that a request has taken: of a live one up to now, by the page's clock since the last news of it. */
export function taken(summary) {
  return summary.live ? summary.ms + performance.now() - summary.received : summary.ms;
}
