/** Asks before a request is sent again, which costs money, and sends it. */

import { askJson } from "./api.js";
import { Dialog } from "./dialog.js";
import { price, tokens } from "./figures.js";
import { html } from "./html.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

/** `allowed`: the gateway sends at all; `absent` says why it has nothing to send, or "". `onSent` gets the id of the new request. */
export function SendDialog({ id, summary, allowed, absent, onSent, onClose }) {
  const [state, setState] = useState({ sending: false, error: null });
  const send = async () => {
    if (state.sending) return;
    setState({ sending: true, error: null });
    await askJson(`requests/${encodeURIComponent(id)}/send`, { method: "POST", body: {} }).then(
      (sent) => onSent(sent.id),
      (error) => setState({ sending: false, error }),
    );
  };
  const reason = !allowed ? OFF : absent;
  return html`
    <${Dialog} title="Send the request again?" onClose=${onClose}>
      ${
        reason === ""
          ? html`<p>
                The gateway sends it to ${visible(summary.model)} of ${visible(summary.backend)} once more.
                <strong> That may cost money</strong>: ${before(summary)}.
              </p>
              <p class="dim">It is served with today's settings. Its key is “inspector”, not that of the client.</p>
              <button class="primary" aria-disabled=${state.sending ? "true" : "false"} onClick=${send}>Send it</button>`
          : html`<p>${reason}</p>`
      }
      ${state.error && html`<p class="banner error" role="alert">${state.error.message}</p>`}
    </${Dialog}>`;
}

const OFF =
  "This page sends nothing: inspector.send is false. Set it to true in settings.json and start the gateway again.";

// What the request has cost, by the settings' price or in tokens.
function before(summary) {
  if (summary.cost) return `before, it cost ${price(summary.cost)}`;
  return tokens(summary) === "-" ? "what it cost before is not known" : `before, it took ${tokens(summary)} tokens in/out`;
}
