/** Keeps the focus on the page where a button is gone once it was pressed. */

/** Returns what to call when it may be gone: then the focus goes to the part around it, from which Tab goes on. */
export function focusAround(event) {
  const around = event.currentTarget.parentElement.closest("[tabindex]");
  return () =>
    requestAnimationFrame(() => document.activeElement === document.body && around?.focus({ preventScroll: true }));
}
