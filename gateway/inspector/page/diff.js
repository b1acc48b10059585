/** What changed since the previous request of the conversation, or since another one: its messages, or its body. */

import { askJson } from "./api.js";
import { count, counted } from "./figures.js";
import { html } from "./html.js";
import { useLoaded, waiting } from "./loaded.js";
import { Contents, Who } from "./messages.js";
import { Choice } from "./sent.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

const VERDICTS = { kept: "Cache kept", broken: "Cache broken", unknown: "Cache unknown" };

const OF = { messages: "Messages", sent: "Sent bytes" };

/** `previous` is the id of the earlier request, or null; `onOpen` gets an id. */
export function Diff(props) {
  const [of, setOf] = useState("messages");
  if (props.previous === null)
    return html`<p class="empty">
      This is the first request of its conversation that is known here. Compare (m) shows how it differs from any other.
    </p>`;
  return html`<div class="sent-line">
      <${Choice} label="What is compared" titles=${OF} names=${Object.keys(OF)} chosen=${of} onChoose=${setOf} />
    </div>
    ${of === "sent" ? html`<${SentLines} ...${props} />` : html`<${MessagesDiff} ...${props} />`}`;
}

function SentLines({ path, previous, query, stamp, onOpen }) {
  const loaded = useLoaded(
    (signal) => askJson(`${path}/diff`, { query: { ...query, against: previous, of: "sent" }, signal }),
    `${path} ${previous}`,
    stamp,
  );
  if (loaded.value === null) return html`<p class="empty">${waiting(loaded)}</p>`;
  const { against, form, added, removed, hunks, cut } = loaded.value;
  return html`<p class="diff-line">
      Against <button class="link" onClick=${() => onOpen(against)}>${visible(against)}</button>, as ${FORMS[form] ?? form}:${" "}
      ${added + removed === 0 ? "the same bytes." : `${counted(added, "line")} added, ${count(removed)} removed.`}
      ${cut && html` <span class="dim">Not all of it is shown or compared.</span>`}
    </p>
    ${hunks.map(
      ({ old, new: at, lines }) =>
        html`<article class="hunk" key=${`${old} ${at}`} aria-label=${`From line ${at}`}>
          <h3>line ${old} → ${at}</h3>
          <pre class="lines" tabindex="0" role="region" aria-label=${`Lines from ${at}`}>${lines.map(
            ({ op, text }) => html`<${ELEMENTS[op]} class="line-of">${`${op} `}${visible(text)}</${ELEMENTS[op]}>`,
          )}</pre>
        </article>`,
    )}`;
}

const FORMS = { json: "JSON", fields: "fields", text: "text", hex: "bytes" };

function MessagesDiff({ path, previous, query, stamp, onOpen }) {
  const loaded = useLoaded(
    (signal) => askJson(`${path}/diff`, { query: { ...query, against: previous }, signal }),
    path,
    `${stamp} ${previous}`,
  );
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
