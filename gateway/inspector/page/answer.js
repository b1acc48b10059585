/** The answer: what it says, and the backend's bytes, the events read from them, and the client's chunks row by row. */

import { askJson } from "./api.js";
import { duration, size } from "./figures.js";
import { html } from "./html.js";
import { More, usePages, waiting } from "./loaded.js";
import { Said } from "./said.js";
import { Text, visible } from "./text.js";
import { useRef, useState } from "./vendor/hooks.mjs";
import { longSilence } from "./waterfall.js";

/** So many reads are loaded at once. */
export const FIRST_READS = 200;

const END = -1; // the number of the read of what belongs to none: the end of the answer, keep-alives

/**
 * `loaded` holds the first reads of the contract's `answer`; the rest is asked for by a button. Of a `live` request the
 * end is not known: what the gateway makes of the bytes so far looks like an answer that broke off.
 */
export function Answer({ loaded, live, path, query }) {
  const load = (span) => askJson(`${path}/answer`, { query: { ...query, ...span } });
  const { pages, more } = usePages(loaded.value, load, FIRST_READS, live);
  if (loaded.value === null) return html`<p class="empty">${waiting(loaded)}</p>`;
  const { total, missing, end, assembled } = loaded.value;
  const rows = rowsOf(pages).filter(({ read }) => !live || read.number !== END);
  return html`<${Said} answer=${assembled} live=${live} />
    <${Reads} rows=${rows} missing=${missing} live=${live} />
    <${More} shown=${pages.at(-1).to} total=${total} noun="read" onMore=${more} />
    <${End} end=${end} live=${live} came=${total + missing > 0} />`;
}

// Returns [{read, events, chunks}]: one row for each read, and one for the end of the body where something came of it.
function rowsOf(pages) {
  const rows = new Map();
  const row = (number) =>
    rows.get(number) ?? rows.set(number, { read: { number }, events: [], chunks: [] }).get(number);
  for (const { reads, events, chunks } of pages) {
    reads.forEach((read) => (row(read.number).read = read));
    events.forEach((event) => row(event.read).events.push(event));
    chunks.forEach((chunk) => row(chunk.read).chunks.push(chunk));
  }
  const end = rows.get(END);
  rows.delete(END);
  return end === undefined ? [...rows.values()] : [...rows.values(), end];
}

function Reads({ rows, missing, live }) {
  const [chosen, setChosen] = useState(null);
  const body = useRef(null);
  if (rows.length === 0 && missing > 0) return html`<p class="empty">${notKept(missing)}</p>`;
  if (rows.length === 0) return html`<p class="empty">The backend ${live ? "has sent nothing yet" : "sent nothing"}.</p>`;
  const silence = longSilence(rows.map((row) => row.read));
  const move = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || !event.target.matches(".read-number")) return;
    event.preventDefault();
    const buttons = [...body.current.querySelectorAll(".read-number")];
    const next = buttons[buttons.indexOf(event.target) + by];
    next?.focus();
  };
  return html`<div class="answer-box" tabindex="0" role="group" aria-label="Bytes, events and chunks">
    <table class="answer">
      <colgroup>
        <col class="number" />
        <col class="wide" />
        <col class="wide" />
        <col class="wide" />
      </colgroup>
      <thead>
        <tr>
          <th scope="col">Read</th>
          <th scope="col">Bytes of the backend</th>
          <th scope="col">Events</th>
          <th scope="col">Chunks to the client</th>
        </tr>
      </thead>
      <tbody ref=${body} onKeyDown=${move}>
        ${rows.map(
          (row, at) =>
            html`<${ReadRow}
              key=${row.read.number}
              row=${row}
              nothing=${rows.length > 1 ? "nothing more" : missing > 0 ? notKept(missing) : "nothing came"}
              silence=${silence}
              chosen=${chosen === row.read.number}
              focusable=${chosen === null ? at === 0 : chosen === row.read.number}
              onChoose=${() => setChosen(row.read.number)}
            />`,
        )}
      </tbody>
    </table>
  </div>`;
}

const notKept = (missing) => `${size(missing)} of the backend were not kept`;

function ReadRow({ row, nothing, silence, chosen, focusable, onChoose }) {
  const { read, events, chunks } = row;
  const end = read.number === END;
  const label = end ? "end" : `#${read.number}`;
  return html`${
      read.number > 0 &&
      read.gap >= silence &&
      html`<tr class="gap-row">
        <td colspan="4">${duration(read.gap)} of silence</td>
      </tr>`
    }
    <tr class=${chosen ? "chosen" : ""} onClick=${onChoose}>
      <th scope="row">
        <button
          class="read-number"
          tabindex=${focusable ? 0 : -1}
          aria-pressed=${chosen ? "true" : "false"}
          onFocus=${onChoose}
        >
          ${label}
        </button>
        ${!end && html`<span class="size">${duration(read.t)}</span><span class="size">${size(read.bytes)}</span>`}
      </th>
      <td>
        ${
          end
            ? html`<span class="dim">${nothing}</span>`
            : html`<${Bytes} read=${read} open=${chosen} />`
        }
      </td>
      <td>
        <div class="stack">${events.map((event) => html`<${Event} key=${event.number} event=${event} />`)}</div>
      </td>
      <td>
        <div class="stack">
          ${chunks.map((chunk) => html`<div class="chunk" key=${chunk.number}><${Text} text=${chunk.text} /></div>`)}
        </div>
      </td>
    </tr>`;
}

function Bytes({ read, open }) {
  return html`<${Text} text=${read.text ?? read.hex} open=${open} class=${read.text === undefined ? "hex" : ""} />
    ${read.cut && html`<p class="dim">Cut here: the read has ${size(read.bytes)}.</p>`}`;
}

function Event({ event }) {
  const fields = Object.entries(event.fields).filter(([, value]) => !isEmpty(value));
  return html`<div class="event">
    <span class="name">${event.event}</span>
    ${fields.map(
      ([name, value]) =>
        html`<span class="field"><span class="dim">${name}</span> <${Text} text=${written(value)} /></span>`,
    )}
  </div>`;
}

function written(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isEmpty(value) {
  return value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

const CUTS = {
  fin: "The backend ended the body before its answer was complete",
  reset: "The connection to the backend broke",
  timeout: "The backend was silent for too long",
  client_gone: "The client left",
};

// The end of the answer; `came`: the backend sent some of it. What came and what was expected of a broken one stands
// above, in the error of the request.
function End({ end, live, came }) {
  if (live) return html`<p class="answer-end">The request is still being served.</p>`;
  if (end.cut === null && end.code === "") return html`<p class="answer-end">The answer is complete.</p>`;
  const what = came ? "It ends here" : "The answer is the gateway's own";
  return html`<p class="banner error" role="group" aria-label="End of the answer">
    <strong>${what}: ${visible(end.code || "no answer")}.</strong> ${end.cut && `${CUTS[end.cut] ?? end.cut}.`}
  </p>`;
}
