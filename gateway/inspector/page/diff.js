/** What changed since the previous request of the conversation, and whether the provider's prompt cache was kept. */

import { askJson } from "./api.js";
import { count, counted } from "./figures.js";
import { html } from "./html.js";
import { useLoaded, waiting } from "./loaded.js";
import { Contents, Who } from "./messages.js";
import { visible } from "./text.js";

const VERDICTS = { kept: "Cache kept", broken: "Cache broken", unknown: "Cache unknown" };

/** `previous` is the id of the earlier request, or null; `onOpen` gets an id. */
export function Diff({ path, previous, query, stamp, onOpen }) {
  const loaded = useLoaded(
    (signal) =>
      previous === null ? null : askJson(`${path}/diff`, { query: { ...query, against: previous }, signal }),
    path,
    `${stamp} ${previous}`,
  );
  if (previous === null)
    return html`<p class="empty">This is the first request of its conversation that is known here.</p>`;
  if (loaded.value === null) return html`<p class="empty">${waiting(loaded)}</p>`;
  const { against, common, first_change: first, cache, changed, new: added } = loaded.value;
  return html`<p class="diff-line">
      Against <button class="link" onClick=${() => onOpen(against)}>${visible(against)}</button>:${" "}
      ${counted(common, "message")} in common${first === null ? "" : `, first change at [${first}]`}, ${count(added.length)} new.
    </p>
    <section class="verdict ${cache.verdict}" aria-label="Prompt cache">
      <strong>${VERDICTS[cache.verdict]}</strong> ${visible(cache.sentence)}${" "}
      <span class="dim"
        >${cache.cached_tokens !== null && `${count(cache.cached_tokens)} cached tokens reported.`}</span
      >
    </section>
    ${changed.map((message) => html`<${Changed} key=${message.index} message=${message} />`)}
    ${added.map((message) => html`<${Added} key=${message.cell.position} message=${message} />`)}`;
}

const ELEMENTS = { "=": "span", "-": "del", "+": "ins" };

function Changed({ message }) {
  return html`<article class="changed-message" aria-label=${`Message ${message.index}`}>
    <h3>[${message.index}]</h3>
    <div class="text">
      ${message.spans.map(({ op, text }) => html`<${ELEMENTS[op]}>${visible(text)}</${ELEMENTS[op]}>`)}
    </div>
  </article>`;
}

// A message behind the end of the earlier request.
function Added({ message: { index, cell } }) {
  return html`<article class="changed-message new" aria-label=${`New message ${index ?? "of the gateway"}`}>
    <h3>${index === null ? "new" : `[${index}] new`}</h3>
    <p class="who"><${Who} cell=${cell} /></p>
    <${Contents} cell=${cell} before=${null} />
  </article>`;
}
