/** Reads the live changes of requests: one fetch of server-sent events, batched per frame, closed while hidden. */

import { ask } from "./api.js";
import { useEffect } from "./vendor/hooks.mjs";

const RETRY_MS = [500, 1000, 2000, 5000, 10000];

/** Yields {event, id, data} of a response of server-sent events; `data` is parsed JSON. */
export async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block.split("\n").map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 1).trim()]),
      );
      if (fields.data) yield { event: fields.event, id: fields.id, data: JSON.parse(fields.data) };
    }
  }
}

/**
 * Keeps one stream open while the page is visible, and resumes it by number; with `reveal` it has the words of
 * requests. `onChanges` gets the changes of a frame,
 * `onState` "connecting", "live", "hidden", "lost" or, where nothing ever changes (204), "recorded"; `onRefused` gets
 * the ApiError of a stream that will not come back.
 */
export class ChangeStream {
  constructor({ reveal, onChanges, onState, onRefused }) {
    this.reveal = reveal;
    this.onChanges = onChanges;
    this.onState = onState;
    this.onRefused = onRefused;
    this.last = null;
    this.failures = 0;
    this.waiting = [];
    this.abort = null;
    this.onVisibility = () => (document.hidden ? this.close("hidden") : this.open());
  }

  start() {
    document.addEventListener("visibilitychange", this.onVisibility);
    this.onVisibility();
  }

  stop() {
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.close("hidden");
  }

  close(state) {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
    this.onState(state);
  }

  async open() {
    if (this.abort !== null) return;
    const abort = (this.abort = new AbortController());
    this.onState("connecting");
    try {
      const response = await ask("stream", { query: { after: this.last, reveal: this.reveal ? 1 : null }, signal: abort.signal });
      this.failures = 0;
      if (response.status === 204) return this.onState("recorded");
      this.onState("live");
      for await (const change of readEvents(response)) this.take(change);
    } catch (error) {
      if (abort.signal.aborted) return;
      if (error.status >= 400 && error.status < 500) return this.onRefused(error);
    }
    if (!abort.signal.aborted) this.retry();
  }

  retry() {
    this.close("lost");
    const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
    this.failures += 1;
    this.timer = setTimeout(() => document.hidden || this.open(), wait);
  }

  take(change) {
    this.last = change.id ?? this.last;
    this.waiting.push(change);
    if (this.waiting.length === 1) requestAnimationFrame(() => this.onChanges(this.waiting.splice(0)));
  }
}

/**
 * Reads the changes of `requests` as long as the component is in the document; `reveal`: with their words. The list is
 * loaded when the stream begins, and again when it comes back: what happened meanwhile is then in it.
 */
export function useStream(requests, reveal, setState, onBack, onRefused) {
  useEffect(() => {
    let begun = false;
    requests.show(reveal);
    const onState = (state) => {
      setState(state);
      if (state !== "live" && state !== "recorded") return;
      requests.reload();
      if (begun) onBack();
      begun = true;
    };
    const stream = new ChangeStream({ reveal, onChanges: (changes) => requests.take(changes), onState, onRefused });
    stream.start();
    return () => stream.stop();
  }, [reveal]);
}

/** Draws the time of live requests, which goes on while nothing is heard of them. */
export function useTicks(requests) {
  useEffect(() => {
    const tick = () => !document.hidden && requests.rows.some((row) => row.live) && requests.onChange();
    const timer = setInterval(tick, 1000);
    return () => clearInterval(timer);
  }, []);
}
