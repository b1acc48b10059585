/** Asks before a request is sent again, which costs money, and sends it as it was, or opens it to be edited. */

import { askJson } from "./api.js";
import { Dialog } from "./dialog.js";
import { draftOf } from "./draft.js";
import { price, tokens } from "./figures.js";
import { html } from "./html.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

/**
 * `settings` say whether the gateway sends at all, and shows words; `absent` says why it has nothing to send, or "".
 * `onSent` gets the id of the new request, and `onEdit` the `draft` with the body of this one.
 */
export function SendDialog({ id, summary, settings, absent, draft, onSent, onEdit, onClose }) {
  const [state, setState] = useState({ sending: false, error: null });
  const fail = (error) => setState({ sending: false, error });
  const edit = async () => {
    if (!settings.reveal || state.sending) return;
    const received = askJson(`requests/${encodeURIComponent(id)}/received`, { query: { reveal: 1 } });
    await received.then((found) => onEdit(draftOf(draft, id, found))).catch(fail);
  };
  const send = async () => {
    if (state.sending) return;
    setState({ sending: true, error: null });
    await askJson(`requests/${encodeURIComponent(id)}/send`, { method: "POST", body: {} }).then(
      (sent) => onSent(sent.id),
      fail,
    );
  };
  const reason = !settings.send ? NOT_ALLOWED : absent;
  return html`
    <${Dialog} title="Send the request again?" onClose=${onClose}>
      ${
        reason === ""
          ? html`<p>
                The gateway sends it to ${visible(summary.model)} of ${visible(summary.backend)} once more.
                <strong> That may cost money</strong>: ${before(summary)}.
              </p>
              <p class="dim">It is served with today's settings. Its key is “inspector”, not that of the client.</p>
              <div class="forms">
                <button class="primary" aria-disabled=${state.sending ? "true" : "false"} onClick=${send}>Send it</button>
                <button aria-disabled=${settings.reveal ? "false" : "true"} aria-describedby="what-editing-shows" onClick=${edit}>
                  Edit it first
                </button>
              </div>
              <p id="what-editing-shows" class="dim">${settings.reveal ? SHOWN : NOT_REVEALED}</p>`
          : html`<p>${reason}</p>`
      }
      ${state.error && html`<p class="banner error" role="alert">${state.error.message}</p>`}
    </${Dialog}>`;
}

/** What is said where `inspector.send` is false. */
export const NOT_ALLOWED =
  "This page sends nothing: inspector.send is false. Set it to true in settings.json and start the gateway again.";
const SHOWN = "Editing shows its words; the gateway's log says so.";
const NOT_REVEALED =
  "Editing needs its words: inspector.reveal is false. Set it to true in settings.json and start the gateway again.";

// What the request has cost, by the settings' price or in tokens.
function before(summary) {
  if (summary.cost) return `before, it cost ${price(summary.cost)}`;
  return tokens(summary) === "-" ? "what it cost before is not known" : `before, it took ${tokens(summary)} tokens in/out`;
}
