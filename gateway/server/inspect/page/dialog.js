/** A dialog over the page. */

import { html } from "./html.js";
import { useEffect, useRef } from "./vendor/hooks.mjs";

/** Escape closes it, and the focus goes back to where it was. `wide`: it holds a table. */
export function Dialog({ title, wide = false, onClose, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    // A dialog that was closed has given the focus back, and it may be elsewhere by now.
    return () => document.activeElement === document.body && before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} onClose=${onClose} aria-labelledby="dialog-title">
    <header>
      <h2 id="dialog-title">${title}</h2>
      <button onClick=${() => dialog.current.close()}>Close</button>
    </header>
    ${children}
  </dialog>`;
}
