/** Asks before all requests are forgotten. */

import { ask } from "./api.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";

/** `requests` is the list, which is emptied. */
export function ForgetDialog({ requests, onClose, announce }) {
  const forget = async () => {
    await ask("requests", { method: "DELETE" }).then(
      () => announce("The requests are forgotten."),
      (error) => announce(error.message),
    );
    requests.clear();
    onClose();
  };
  return html`
    <${Dialog} title="Forget all requests?" onClose=${onClose}>
      <p>The gateway drops every request that has ended from its memory, with its contents. Recordings on disk stay.</p>
      <button class="primary" onClick=${forget}>Forget them</button>
    </${Dialog}>`;
}
