/** Asks before all requests are forgotten. */

import { ask } from "./api.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { useState } from "./vendor/hooks.mjs";

/** `requests` is the list, which is emptied. */
export function ForgetDialog({ requests, onClose, announce }) {
  const [error, setError] = useState(null);
  const forget = () =>
    ask("requests", { method: "DELETE" }).then(() => {
      announce("The requests are forgotten.");
      requests.clear();
      onClose();
    }, setError);
  return html`
    <${Dialog} title="Forget all requests?" onClose=${onClose}>
      <p>The gateway drops every request that has ended from its memory, with its contents. Recordings on disk stay.</p>
      <button class="primary" onClick=${forget}>Forget them</button>
      ${error && html`<p class="banner error" role="alert">${error.message}</p>`}
    </${Dialog}>`;
}
