/** Loads what a component shows, again when what it depends on changes. */

import { count, counted } from "./figures.js";
import { focusAround } from "./focus.js";
import { html } from "./html.js";
import { useEffect, useRef, useState } from "./vendor/hooks.mjs";

const NOTHING = { value: null, error: null, subject: null, form: "" };
const NO_CONNECTION = 0;
const OVERLOADED = 503;
const TRIES = 10;
const AGAIN_MS = 500;

/**
 * Returns {value, error}: null until they are there. `load(signal)` returns a promise, or null for nothing to load yet.
 * Of another `subject` nothing is kept. Of the same one the last value stays until `stamp` has brought the next, which
 * is asked for when the one before has come: what changes faster than it loads is shown all the same. A value of the
 * same `form` stays also where the gateway does not answer now, which the bar says; of the form "" none does.
 */
export function useLoaded(load, subject, stamp = "", form = "") {
  const [state, setState] = useState(NOTHING);
  const latest = useRef(null);
  latest.current = { load, form };
  const loading = useRef(null);
  useEffect(() => {
    const abort = new AbortController();
    loading.current = { subject, signal: abort.signal, wanted: 0, busy: false };
    return () => abort.abort();
  }, [subject]);
  useEffect(() => {
    loading.current.wanted += 1;
    if (!loading.current.busy) loadAll(loading.current, latest, setState);
  }, [subject, stamp]);
  return state.subject === subject ? state : NOTHING;
}

// Loads until what came is what was wanted last.
async function loadAll(loading, latest, setState) {
  loading.busy = true;
  for (let had = 0; had !== loading.wanted && !loading.signal.aborted; ) {
    had = loading.wanted;
    const next = await loadOne(latest.current, loading);
    if (next !== null && !loading.signal.aborted) setState((old) => (isKept(old, next) ? old : next));
  }
  loading.busy = false;
}

// Returns the next state, or null where there is nothing to load; a gateway that is busy is asked again.
async function loadOne({ load, form }, { subject, signal }) {
  for (let tries = 1; ; tries += 1) {
    try {
      const value = await load(signal);
      return value === null ? null : { value, error: null, subject, form };
    } catch (error) {
      const isLast = error.status !== OVERLOADED || tries === TRIES || signal.aborted;
      if (isLast) return { value: null, error, subject, form };
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

function isKept(old, next) {
  const same = old.subject === next.subject && old.form === next.form && next.form !== "";
  return same && old.value !== null && [NO_CONNECTION, OVERLOADED].includes(next.error?.status);
}

/**
 * Returns {pages, more}: the `first` page of a list (null: not loaded yet) with those behind it that `more` has loaded,
 * `size` elements at a time by `load({from, to})`. Another `subject` begins with the first one.
 */
export function usePages(first, load, size, subject) {
  const [further, setFurther] = useState([]);
  useEffect(() => setFurther([]), [subject]);
  const pages = first === null ? [] : [first, ...further];
  const more = async () => {
    const from = pages.at(-1).to;
    const page = await load({ from, to: from + size });
    setFurther((known) => ((known.at(-1) ?? first).to === from ? [...known, page] : known));
  };
  return { pages, more };
}

/** The button below a list of which the gateway has more; `noun` names one of its elements, `onMore` loads some. */
export function More({ shown, total, noun, onMore }) {
  const [{ busy, error }, setState] = useState({ busy: false, error: null });
  if (shown >= total) return null;
  const load = async (event) => {
    if (busy) return;
    const keepFocus = focusAround(event.currentTarget);
    setState({ busy: true, error: null });
    const failure = await onMore().then(
      () => null,
      (error) => error,
    );
    setState({ busy: false, error: failure });
    keepFocus();
  };
  return html`<button class="more" aria-disabled=${busy ? "true" : "false"} onClick=${load}>
      ${busy ? "Loading" : "Load"} more: ${count(shown)} of ${counted(total, noun)} are shown
    </button>
    ${error && html`<p class="refused" role="alert">${error.message}</p>`}`;
}

/** Returns what a section shows while its value is not there: that it loads, or why it failed. */
export function waiting({ error }) {
  return error === null ? "Loading ..." : error.message;
}
