/** The client's request as it came, beside what was sent: each in every form that the gateway can read. */

import { askJson } from "./api.js";
import { size } from "./figures.js";
import { html } from "./html.js";
import { useLoaded, waiting } from "./loaded.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

const TITLES = { json: "JSON", text: "Text", fields: "Fields", hex: "Hex" };

/**
 * `query` and `stamp` as in request.js: the bodies are loaded when the view is opened, and again when they changed.
 * `bodies` names those that are here; `prepared`: there was something to send.
 */
export function Sent({ path, query, stamp, bodies, prepared }) {
  const load = (name) =>
    useLoaded(
      (signal) => (bodies.includes(name) ? askJson(`${path}/${name}`, { query, signal }) : null),
      path,
      `${stamp} ${bodies.includes(name)}`,
    );
  const missing = (name, why) => (bodies.includes(name) ? "" : why);
  const [received, sent] = [load("received"), load("sent")];
  return html`<div class="bodies">
    <${Body} loaded=${received} missing=${missing("received", NOT_READ)} title="Client's request" name="Received" />
    <${Body} loaded=${sent} missing=${missing("sent", prepared ? LARGE : NOT_SENT)} title="Sent to the backend" name="Sent" />
  </div>`;
}

const NOT_READ = "The body of the request is not here: it was not read, or is too large.";
const NOT_SENT = "Nothing was sent to the backend.";
const LARGE = "What was sent to the backend was not kept: it is too large.";

function Body({ loaded, missing, title, name: side }) {
  const [chosen, setChosen] = useState(null);
  return html`<section class="body-side" aria-label=${title}>
    <h3>${title}</h3>
    ${
      loaded.value === null
        ? html`<p class="empty">${missing || waiting(loaded)}</p>`
        : html`<${Forms} ...${loaded.value} side=${side} chosen=${chosen} onChoose=${setChosen} />`
    }
  </section>`;
}

function Forms({ method, path, bytes, views, cut, side, chosen, onChoose }) {
  const names = Object.keys(views);
  const name = names.includes(chosen) ? chosen : names[0];
  return html`<div class="sent-line">
      <code>${method} ${visible(path)}</code> <span class="dim">${size(bytes)}${cut ? ", cut below" : ""}</span>
      <${Choice} label=${`Form of the ${side.toLowerCase()} bytes`} names=${names} chosen=${name} onChoose=${onChoose} />
    </div>
    ${
      name === undefined
        ? html`<p class="empty">The request has no body.</p>`
        : html`<pre class="bytes" tabindex="0" role="region" aria-label=${`${side} bytes as ${TITLES[name] ?? name}`}>
${visible(views[name])}</pre>`
    }`;
}

/** Buttons of which one is pressed; `titles` are their texts by name. */
export function Choice({ label, names, titles = TITLES, chosen, onChoose }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${names.map((name) => {
      const pressed = name === chosen ? "true" : "false";
      return html`<button aria-pressed=${pressed} onClick=${() => onChoose(name)}>${titles[name] ?? name}</button>`;
    })}
  </div>`;
}
