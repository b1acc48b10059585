/** Keeps the focus on the page where what had it is gone. */

import { useLayoutEffect } from "./vendor/hooks.mjs";

/**
 * Returns what to call once the page is told what makes `element` go: when that is drawn and no element has the focus,
 * the part around it gets it, from which Tab goes on. Nothing is drawn between: the next key finds the focus there.
 */
export function focusAround(element) {
  const around = element.parentElement.closest("[tabindex]");
  return () => queueMicrotask(() => document.activeElement === document.body && around?.focus({ preventScroll: true }));
}

/** Gives the focus to `part`, a reference to an element with a tabindex, when what had it there is gone. */
export function useFocusOf(part) {
  const isInside = part.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    if (isInside && document.activeElement === document.body) part.current.focus({ preventScroll: true });
  });
}
