/** One row of the list: what was asked, by whom, and what became of it. */

import { clock, duration, price, tokens } from "./figures.js";
import { html } from "./html.js";
import { taken } from "./requests.js";
import { visible } from "./text.js";

const MOST_RESULTS = 3;
// What these outcomes leave open is said by the code.
const UNNAMED = new Set(["refused", "failed"]);

/** The columns. In a narrow list the style sheet puts some of them into a second line, and leaves others out. */
export const COLUMNS = [
  { name: "time", title: "Time", show: (one) => clock(one.began) },
  { name: "asks", title: "Asks", show: (one, veiled) => html`<${Asked} summary=${one} veiled=${veiled} />` },
  {
    name: "client",
    title: "Client",
    show: (one) => html`<${Client} summary=${one} />`,
    tooltip: (one) => one.client || null,
  },
  { name: "model", title: "Model", show: (one) => visible(one.model || "-") },
  {
    name: "backend",
    title: "Backend, dialect",
    show: (one) => html`${visible(one.backend || "-")}, ${one.dialect.replace(/^(openai|anthropic)_/, "")}`,
    tooltip: (one) => `${one.backend}, ${one.dialect}`,
  },
  { name: "tokens", title: "Tokens in/out", show: tokens },
  { name: "cost", title: "Cost", show: (one) => price(one.cost) },
  { name: "first", title: "First byte", show: (one) => duration(one.first_ms) },
  { name: "ms", title: "Took", show: (one) => duration(taken(one)) },
  { name: "status", title: "Status", show: (one) => html`<${Status} summary=${one} />` },
  {
    name: "changes",
    title: "Outcome",
    show: (one) => html`<${Outcome} summary=${one} />`,
    tooltip: (one) => [one.code, one.changes, ...one.rules, one.cache?.sentence].filter(Boolean).join(" ") || null,
  },
];

/** The status of a request, in words as well as in colour: a stream that failed had begun with a 200. */
export function Status({ summary }) {
  if (summary.live) return html`<span class="live-mark">live</span>`;
  if (!isFailed(summary)) return html`<span class="fine">${summary.status || "-"}</span>`;
  return html`<span class="failed">${summary.status || "-"}${summary.status < 400 && " failed"}</span>`;
}

/** Whether a request failed. */
export function isFailed(summary) {
  return Boolean(summary.code) || summary.status >= 400;
}

/** The tools whose results a request brings: ["read", "read", "ls"] -> "read ×2, ls". */
export function toolNames(results) {
  const names = [...new Set(results)];
  const shown = names.slice(0, MOST_RESULTS).map((name) => {
    const times = results.filter((one) => one === name).length;
    return times > 1 ? `${name} ×${times}` : name;
  });
  return [...shown, ...(names.length > MOST_RESULTS ? ["..."] : [])].join(", ");
}

/** What a request asks; `veiled`: its words are replaced by others. */
export function Asked({ summary, veiled }) {
  const { words, results } = summary.asked;
  if (!words && results.length === 0) {
    return html`<span class="dim">${summary.contents === "kept" ? "no words" : "contents not kept"}</span>`;
  }
  return html`${results.length > 0 && html`<span class="results">↳ ${visible(toolNames(results))}</span>${" "}`}<span
      class=${veiled ? "veiled" : "said-words"}
      title=${veiled ? "Words are replaced until they are revealed" : null}
      >${visible(words)}</span
    >`;
}

function Client({ summary }) {
  // Its version stands in the opened request.
  return html`${visible(summary.client.replace(/ \d\S*$/, "") || "-")}${
    summary.key !== "-" && html` <span class="key">${visible(summary.key)}</span>`
  }`;
}

function Outcome({ summary }) {
  const stages = summary.changes ? summary.changes.split("; ") : [];
  const failed = !summary.live && isFailed(summary);
  const said = failed && UNNAMED.has(summary.outcome) ? `${summary.outcome}: ${summary.code}` : summary.outcome;
  return html`<span class=${failed ? "failed" : "outcome"}>${visible(said)}</span>
  ${stages.map((stage) => html`<span class="chip">${stage.replace("=", " ")}</span>`)}
  ${summary.cache && html`<span class="chip">cache ${summary.cache.cause.replace("_", " ")}</span>`}`;
}

/**
 * The row at the position `at`, `top` pixels down. `focusable`: the Tab key leads to it; `marked`: it is the one that
 * another is compared with. `onCurrent` and `onOpen` get its id.
 */
export function Row({ summary, at, top, focusable, opened, marked, veiled, onCurrent, onOpen }) {
  const failed = !summary.live && isFailed(summary);
  return html`<div
    role="row"
    class="line ${failed ? "is-failed" : ""} ${marked ? "is-marked" : ""}"
    data-id=${summary.id}
    aria-rowindex=${at + 2}
    aria-selected=${opened ? "true" : "false"}
    tabindex=${focusable ? 0 : -1}
    style=${{ transform: `translateY(${top}px)` }}
    onFocus=${() => onCurrent(summary.id)}
    onClick=${() => onOpen(summary.id)}
  >
    ${COLUMNS.map(({ name, show, tooltip }) => {
      return html`<span role="gridcell" class=${name} title=${tooltip?.(summary)}>${show(summary, veiled)}</span>`;
    })}
  </div>`;
}
