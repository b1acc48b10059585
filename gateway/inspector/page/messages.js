/** The messages of a request, stage by stage and side by side: the same message stands in one row. */

import { askJson } from "./api.js";
import { count, counted, size } from "./figures.js";
import { focusAround } from "./focus.js";
import { html } from "./html.js";
import { More, usePages, waiting } from "./loaded.js";
import { NoticeList, unplaced } from "./notices.js";
import { isChanged, runs } from "./runs.js";
import { Text, visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

const STAGES = [
  { name: "client", title: "Client's request" },
  { name: "repaired", title: "Repaired" },
  { name: "trimmed", title: "Trimmed" },
  { name: "sent", title: "Sent" },
];

const MARKS = { "=": "same", "~": "changed", "+": "added by the gateway", "-": "left out", "..": "shortened" };
const MARK_NAMES = { "=": "same", "~": "changed", "+": "added", "-": "left-out", "..": "shortened" };

const FORMS = { object: "arguments as an object", text: "arguments as text" };

/** So many messages are loaded at once. */
export const FIRST_MESSAGES = 500;

/** `loaded` holds the first rows of the contract's `messages`; the rest is asked for by a button. */
export function Messages({ loaded, notices, path, query }) {
  const load = (span) => askJson(`${path}/messages`, { query: { ...query, ...span } });
  const { pages, more } = usePages(loaded.value, load, FIRST_MESSAGES, path);
  if (loaded.value === null) return html`<p class="empty">${waiting(loaded)}</p>`;
  const rows = pages.flatMap((page) => page.rows);
  return html`<${NoticeList} notices=${unplaced(notices, rows)} />
    <${StageTable} rows=${rows} notices=${notices} />
    <${More} shown=${pages.at(-1).to} total=${loaded.value.total} noun="message" onMore=${more} />`;
}

/** Rows of the contract as a table; also what the view "What if" shows. */
export function StageTable({ rows, notices }) {
  const [unfolded, setUnfolded] = useState(new Set());
  const unfold = (run, event) => {
    const keepFocus = focusAround(event.currentTarget);
    setUnfolded(new Set([...unfolded, run.start]));
    keepFocus();
  };
  const byNumber = new Map(notices.map((notice) => [notice.number, notice]));
  const changed = rows.filter((row) => isChanged(row, byNumber));
  const narrow = new Set(
    STAGES.slice(1)
      .map((stage) => stage.name)
      .filter((name) => rows.every((row) => isSame(row, name))),
  );
  return html`<p class="changed-line">${changedLine(rows, changed, narrow)} <${Legend} /></p>
    <div class="stages-box" tabindex="0" role="group" aria-label="Messages by stage">
      <table class="stages">
        <colgroup>
          <col class="index" />
          ${STAGES.map(({ name }) => html`<col class=${narrow.has(name) ? "narrow" : "wide"} />`)}
        </colgroup>
        <thead>
          <tr>
            <th scope="col" class="index"><span class="unseen">Message</span></th>
            ${STAGES.map(({ name, title }) => {
              const width = narrow.has(name) ? "narrow" : "";
              return html`<th scope="col" class=${width} title=${title}><span>${title}</span></th>`;
            })}
          </tr>
        </thead>
        <tbody>
          ${runs(rows, byNumber).map((run) =>
            run.folded && !unfolded.has(run.start)
              ? html`<tr key=${`run-${run.start}`} class="fold">
                  <td colspan="5">
                    <button onClick=${(event) => unfold(run, event)}>${run.folded}</button>
                  </td>
                </tr>`
              : run.rows.map(
                  (row, at) =>
                    html`<${MessageRow}
                      key=${`row-${run.start + at}`}
                      row=${row}
                      narrow=${narrow}
                      changed=${isChanged(row, byNumber)}
                      notices=${row.notices.map((number) => byNumber.get(number)).filter(Boolean)}
                    />`,
                ),
          )}
        </tbody>
      </table>
    </div>`;
}

// A backend that takes only text gets the same messages in another form; `same` are the stages that show nothing new.
function changedLine(rows, changed, same) {
  if (rows.length === 0) return "There are no messages.";
  const all = same.size === STAGES.length - 1 ? "every stage is the same" : "the backend gets them in its own form";
  if (changed.length === 0) return `${counted(rows.length, "message")}; ${all}.`;
  return `${count(changed.length)} of ${counted(rows.length, "message")} changed or noticed.`;
}

function Legend() {
  const one = ([mark, meaning]) =>
    html`<span><span class="mark ${MARK_NAMES[mark]}" aria-hidden="true">${mark}</span>${meaning}</span>`;
  return html`<span class="legend">${Object.entries(MARKS).map(one)}</span>`;
}

// Whether nothing has to be shown at a stage: the message is that of the stage before, word by word.
function isSame(row, name) {
  const cell = row.cells[name];
  return (
    cell?.mark === "=" &&
    cell.text ===
      before(
        row,
        STAGES.findIndex((stage) => stage.name === name),
      )
  );
}

function MessageRow({ row, narrow, changed, notices }) {
  return html`<tr class=${changed ? "is-changed" : ""}>
      <th scope="row" class="index">${row.index === null ? "new" : `[${row.index}]`}</th>
      ${STAGES.map(({ name }, at) => {
        const width = narrow.has(name) ? "narrow" : "";
        return html`<td class=${width}><${Cell} cell=${row.cells[name]} before=${before(row, at)} /></td>`;
      })}
    </tr>
    ${
      notices.length > 0 &&
      html`<tr class="notice-row">
        <td></td>
        <td colspan="4"><${NoticeList} notices=${notices} /></td>
      </tr>`
    }`;
}

// The text of the message at the stage before; null where it was not there.
function before(row, at) {
  return (
    STAGES.slice(0, at)
      .map(({ name }) => row.cells[name])
      .findLast((cell) => cell && cell.mark !== "-")?.text ?? null
  );
}

function Cell({ cell, before }) {
  if (cell === null || cell === undefined)
    return html`<span class="nothing" role="img" aria-label="not there">·</span>`;
  if (cell.mark === "-") return html`<p class="who"><${Mark} mark="-" /> <span class="dim">left out here</span></p>`;
  const same = cell.mark === "=" && cell.text === before;
  return html`<div class="cell ${MARK_NAMES[cell.mark]}">
    <p class="who"><${Mark} mark=${cell.mark} /> ${!same && html`<${Who} cell=${cell} />`}</p>
    ${!same && html`<${Contents} cell=${cell} before=${before} />`}
  </div>`;
}

/** Who says a message, and its size. */
export function Who({ cell }) {
  return html`<span class="role">${visible(cell.role)}</span>
    ${cell.name && html`<span class="name">${visible(cell.name)}</span>`}
    ${cell.answers?.length > 0 && html`<span class="id">${visible(cell.answers.join(", "))}</span>`}
    <span class="size">${size(cell.bytes)}</span>`;
}

/** What a message says; `before` is its text at the stage before. */
export function Contents({ cell, before }) {
  return html`${cell.reasoning && html`<${Reasoning} text=${cell.reasoning} />`}
  ${cell.text && html`<${Text} text=${cell.text} before=${before} />`}
  ${cell.calls.map((call) => html`<${Call} call=${call} />`)}
  ${cell.cut && html`<p class="dim">Cut here: the whole message has ${size(cell.bytes)}.</p>`}`;
}

function Reasoning({ text }) {
  return html`<div class="reasoning"><span class="dim">reasons</span> <${Text} text=${text} /></div>`;
}

function Mark({ mark }) {
  return html`<span class="mark ${MARK_NAMES[mark]}" role="img" aria-label=${MARKS[mark]} title=${MARKS[mark]}
    >${mark}</span
  >`;
}

function Call({ call }) {
  return html`<div class="call">
    <p class="who">
      <span class="dim">calls</span> <span class="name">${visible(call.name)}</span>
      <span class="id">${visible(call.id)}</span>
      ${call.form && html`<span class="form">${FORMS[call.form]}</span>`}
    </p>
    <${Text} text=${call.arguments} />
  </div>`;
}
