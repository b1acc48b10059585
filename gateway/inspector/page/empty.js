/** What stands where the list has no rows: how to send a request. */

import { copyText } from "./copies.js";
import { html } from "./html.js";
import { useState } from "./vendor/hooks.mjs";

/** `filter` is the one that no request passes, or "", and `onClear` takes it away. */
export function Empty({ filter, settings, onClear, announce }) {
  const [said, setSaid] = useState("");
  if (filter)
    return html`<div class="empty start">
      <p>No request passes the filter.</p>
      <button onClick=${onClear}>Clear the filter</button>
    </div>`;
  const copy = async () => {
    const copied = await copyText(settings.example);
    const outcome = copied ? "The command is on the clipboard." : "The browser gives this page no clipboard.";
    setSaid(outcome);
    announce(outcome);
  };
  return html`<div class="empty start">
    <p><strong>No requests yet.</strong> Send one, and it appears here when it begins:</p>
    <pre class="bytes" tabindex="0" role="region" aria-label="Example">${settings.example}</pre>
    <button onClick=${copy}>Copy the command</button> ${said}
  </div>`;
}
