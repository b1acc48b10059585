/** Sends what is written in the page, and holds its answer as it comes. */

import { ApiError, ask } from "./api.js";
import { readEvents } from "./stream.js";

// Of a longer part, the rest is only in the request.
const MOST_SHOWN = 65536;

/**
 * The last request that was sent from the page. `id` is null until the gateway has begun it; `parts` are those of the
 * answer so far, and `end` says how it ended, as in the contract of the route `send`. `error` is an ApiError of a
 * request that was not sent, or whose answer was lost. `onChange` is called when one of them changes.
 */
export class Sending {
  constructor() {
    this.onChange = () => {};
    this.clear();
  }

  clear() {
    this.id = null;
    this.like = null;
    this.parts = [];
    this.end = null;
    this.error = null;
    this.cancelled = false;
    this.abort = null;
  }

  get busy() {
    return this.abort !== null;
  }

  /** Sends a body, a text, to a path; `like` is the id of the kept request whose headers it has. */
  async send({ path, body, like }) {
    this.clear();
    this.like = like;
    const abort = (this.abort = new AbortController());
    this.onChange();
    try {
      const response = await ask("send", { method: "POST", query: { path, like }, text: body, signal: abort.signal });
      for await (const { event, data } of readEvents(response)) this.take(event, data);
      if (this.end === null) this.error = new ApiError(0, "no_connection", "The connection to the gateway broke.");
    } catch (error) {
      if (!abort.signal.aborted) this.error = error;
    }
    this.abort = null;
    this.onChange();
  }

  /** Ends the request: the gateway then ends that of the backend. */
  cancel() {
    if (!this.busy) return;
    this.cancelled = true;
    this.abort.abort();
  }

  take(event, data) {
    if (event === "begun") this.id = data.id;
    else if (event === "pieces") data.forEach((piece) => this.add(piece));
    else if (event === "ended") this.end = data;
    this.onChange();
  }

  add({ part: number, kind, text = "", id = "", name = "" }) {
    const part = (this.parts[number] ??= { kind, text: "", id, name, cut: false });
    part.text += text;
    if (part.text.length > MOST_SHOWN) {
      part.text = part.text.slice(0, MOST_SHOWN);
      part.cut = true;
    }
  }
}
