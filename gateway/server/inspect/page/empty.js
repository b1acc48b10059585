/** What stands where the list has no rows: how to send a request. */

import { copyText } from "./copies.js";
import { html } from "./html.js";

/** `filter` is the one that no request passes, or "". */
export function Empty({ filter, settings, announce }) {
  if (filter) return html`<div class="empty"><p>No request passes the filter.</p></div>`;
  const copy = async () =>
    announce(
      (await copyText(settings.example))
        ? "The command is on the clipboard."
        : "The browser gives this page no clipboard.",
    );
  return html`<div class="empty start">
    <p><strong>No requests yet.</strong> Send one, and it appears here when it begins:</p>
    <pre class="bytes" tabindex="0" role="region" aria-label="Example">${settings.example}</pre>
    <button onClick=${copy}>Copy the command</button>
  </div>`;
}
