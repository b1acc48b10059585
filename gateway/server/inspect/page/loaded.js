/** Loads what a component shows, again when what it depends on changes. */

import { count, counted } from "./figures.js";
import { html } from "./html.js";
import { useEffect, useState } from "./vendor/hooks.mjs";

const NOTHING = { value: null, error: null, subject: null };

/**
 * Returns {value, error}: null until they are there. `load(signal)` returns a promise, or null for nothing to load yet.
 * Of another `subject` nothing is kept; of the same one the last value stays until `stamp` has brought the next.
 */
export function useLoaded(load, subject, stamp = "") {
  const [state, setState] = useState(NOTHING);
  useEffect(() => {
    const abort = new AbortController();
    const promise = load(abort.signal);
    if (promise === null) return undefined;
    promise.then(
      (value) => abort.signal.aborted || setState({ value, error: null, subject }),
      (error) => abort.signal.aborted || setState({ value: null, error, subject }),
    );
    return () => abort.abort();
  }, [subject, stamp]);
  return state.subject === subject ? state : NOTHING;
}

/** The button below a list of which the gateway has more; `noun` names one of its elements, `onMore` loads some. */
export function More({ shown, total, noun, onMore }) {
  const [error, setError] = useState(null);
  if (shown >= total) return null;
  const load = () => onMore().then(() => setError(null), setError);
  return html`<button class="more" onClick=${load}>
      Load more: ${count(shown)} of ${counted(total, noun)} are shown
    </button>
    ${error && html`<p class="refused" role="alert">${error.message}</p>`}`;
}

/** Returns what a section shows while its value is not there: that it loads, or why it failed. */
export function waiting({ error }) {
  return error === null ? "Loading ..." : error.message;
}
