/** A dialog over the page. */

import { focusAround } from "./focus.js";
import { html } from "./html.js";
import { useLayoutEffect, useRef } from "./vendor/hooks.mjs";

/**
 * Escape closes it, and the focus goes back to where it was. `wide`: it holds a table. Who shows it takes it away in
 * `onClose`, at once: a key that is pressed next finds no dialog.
 */
export function Dialog({ title, wide = false, onClose, children }) {
  const dialog = useRef(null);
  // Closed while it is still in the document, which gives the focus back before another key can come.
  useLayoutEffect(() => {
    const element = dialog.current;
    const keepFocus = focusAround(document.activeElement);
    element.showModal();
    // A browser may close it without asking. The event of a dialog that is gone would close the next one.
    element.addEventListener("close", onClose);
    return () => {
      element.removeEventListener("close", onClose);
      element.close();
      keepFocus();
    };
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} onCancel=${cancel} aria-labelledby="dialog-title">
    <header>
      <h2 id="dialog-title">${title}</h2>
      <button onClick=${onClose}>Close</button>
    </header>
    ${children}
  </dialog>`;
}
