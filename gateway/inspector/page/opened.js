/** What is shown beside the list, which the address names: a request, the place to try, or nothing. */

import { addressOf, ofAddress } from "./address.js";
import { useEffect, useRef, useState } from "./vendor/hooks.mjs";

// Rows that the keys pass faster than this are not opened: each would have to be loaded.
const PASSING_MS = 150;

/**
 * Returns what is `opened` (the id of a request, or null), whether the page is `trying`, the row `at` which the list is
 * with how often it has moved, and the id that was `entered` by a key; and what changes them. `list` refers to the
 * element of the list, which takes the focus of what is closed.
 */
export function useOpened(requests, list) {
  const [opened, setOpened] = useState(() => ofAddress("request"));
  const [trying, setTrying] = useState(() => ofAddress("try") !== null);
  const [at, setAt] = useState({ current: opened, moves: 0 });
  const [entered, setEntered] = useState(null);
  // The request of the address may be far down the list; its row takes the focus from nobody who types already.
  useEffect(() => {
    const isIdle = document.activeElement === document.body;
    if (requests.loaded && opened !== null && isIdle) setAt({ current: opened, moves: at.moves + 1 });
  }, [requests.loaded]);
  const passing = useRef({ at: 0, timer: 0 });
  useEffect(() => {
    const onAddress = () => {
      const id = ofAddress("request");
      const isLeft = id === null && document.activeElement.closest(".request");
      setOpened(id);
      setTrying(ofAddress("try") !== null);
      if (id !== null) setAt((old) => ({ ...old, current: id }));
      else if (isLeft) setAt((old) => ({ ...old, moves: old.moves + 1 }));
    };
    addEventListener("hashchange", onAddress);
    return () => removeEventListener("hashchange", onAddress);
  }, []);

  const go = (id, address) => {
    clearTimeout(passing.current.timer);
    if (address !== location.hash) history.pushState(null, "", address);
    setOpened(id);
    setTrying(id === null);
  };
  const open = (id, byKey = false, against = null) => {
    go(id, addressOf(against === null ? { request: id } : { request: id, against }));
    setAt({ ...at, current: id });
    setEntered(byKey ? id : null);
  };
  const close = () => {
    clearTimeout(passing.current.timer);
    history.pushState(null, "", location.pathname + location.search);
    setOpened(null);
    setTrying(false);
    setAt({ ...at, moves: at.moves + 1 });
    // Once that is drawn, unless a row has it.
    queueMicrotask(() => document.activeElement === document.body && list.current.focus({ preventScroll: true }));
  };
  const moveTo = (position) => {
    const row = requests.rows[Math.max(0, Math.min(position, requests.rows.length - 1))];
    if (row === undefined) return;
    setAt({ current: row.id, moves: at.moves + 1 });
    setEntered(null);
    if (opened !== null) pass(row.id);
  };
  const pass = (id) => {
    const now = performance.now();
    clearTimeout(passing.current.timer);
    const wait = now - passing.current.at < PASSING_MS ? PASSING_MS : 0;
    const show = () => {
      history.replaceState(null, "", addressOf({ request: id }));
      setOpened(id);
    };
    const timer = setTimeout(show, wait);
    passing.current = { at: now, timer };
  };
  const tryOut = () => go(null, addressOf({ try: 1 }));
  return { opened, trying, at, setAt, entered, open, tryOut, close, moveTo };
}
