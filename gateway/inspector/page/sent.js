/** What was sent to the backend: its bytes in each form that the gateway can read, protobuf as fields, text and hex. */

import { askJson } from "./api.js";
import { size } from "./figures.js";
import { html } from "./html.js";
import { useLoaded, waiting } from "./loaded.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

const TITLES = { json: "JSON", text: "Text", fields: "Fields", hex: "Hex" };

/** `query` and `stamp` as in request.js: the body is loaded when the view is opened, and again when it changed. */
export function Sent({ path, query, stamp }) {
  const [chosen, setChosen] = useState(null);
  const loaded = useLoaded((signal) => askJson(`${path}/sent`, { query, signal }), path, stamp);
  if (loaded.value === null) return html`<p class="empty">${waiting(loaded)}</p>`;
  const { method, path: target, bytes, views, cut } = loaded.value;
  const names = Object.keys(views);
  const name = names.includes(chosen) ? chosen : names[0];
  return html`<div class="sent-line">
      <code>${method} ${visible(target)}</code> <span class="dim">${size(bytes)}${cut ? ", cut below" : ""}</span>
      <${Choice} label="Form of the bytes" names=${names} chosen=${name} onChoose=${setChosen} />
    </div>
    ${
      name === undefined
        ? html`<p class="empty">The request has no body.</p>`
        : html`<pre class="bytes" tabindex="0" role="region" aria-label=${`Sent bytes as ${TITLES[name] ?? name}`}>
${visible(views[name])}</pre>`
    }`;
}

function Choice({ label, names, chosen, onChoose }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${names.map((name) => {
      const pressed = name === chosen ? "true" : "false";
      return html`<button aria-pressed=${pressed} onClick=${() => onChoose(name)}>${TITLES[name] ?? name}</button>`;
    })}
  </div>`;
}
