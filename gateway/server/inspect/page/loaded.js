/** Loads what a component shows, again when what it depends on changes. */

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

/** Returns what a section shows while its value is not there: that it loads, or why it failed. */
export function waiting({ error }) {
  return error === null ? "Loading ..." : error.message;
}
