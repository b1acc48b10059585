/** The list of requests: a grid of which only the visible rows are in the document. */

import { clock, count, duration, tokens } from "./figures.js";
import { html } from "./html.js";
import { taken } from "./requests.js";
import { visible } from "./text.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.mjs";

const ROW = 27; // CSS pixels; the style sheet has the same number
const BEYOND = 8; // rows outside the window, on each side

const COLUMNS = [
  { name: "time", title: "Time", show: (one) => clock(one.began) },
  { name: "key", title: "Key", show: (one) => visible(one.key || "-") },
  { name: "model", title: "Model", show: (one) => visible(one.model || "-") },
  { name: "backend", title: "Backend", show: (one) => visible(one.backend || "-") },
  { name: "status", title: "Status", show: (one) => html`<${Status} summary=${one} />` },
  { name: "ms", title: "Took", show: (one) => duration(taken(one)) },
  { name: "tokens", title: "Tokens in/out", show: tokens },
  {
    name: "changes",
    title: "Changes",
    show: (one) => html`<${Changes} summary=${one} />`,
    tooltip: (one) => [one.code, one.changes, ...one.rules].filter(Boolean).join(" ") || null,
  },
];

/** The outcome of a request, in words as well as in colour. */
export function Status({ summary }) {
  if (summary.live) return html`<span class="live-mark">live</span>`;
  const failed = summary.code || summary.status >= 400;
  return html`<span class=${failed ? "failed" : "fine"}>${summary.status || "-"}</span>`;
}

function Changes({ summary }) {
  const stages = summary.changes ? summary.changes.split("; ") : [];
  return html`${summary.code && html`<span class="failed">${visible(summary.code)}</span>`}
  ${stages.map((stage) => html`<span class="chip">${stage.replace("=", " ")}</span>`)}`;
}

/**
 * `current`: the id of the row that the keys are at; `moves` counts how often they moved, which brings the focus there.
 * `opened`: the id of the row that is shown beside the list.
 */
export function RequestList({ requests, current, moves, opened, follow, onCurrent, onOpen, onFollow }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const rows = requests.rows;
  useSize(box, (height) => setView((old) => ({ ...old, height })));
  useAnchor(box, rows, follow);
  useShown(box, rows, current, moves);
  const scroll = () => {
    const top = box.current.scrollTop;
    setView((old) => ({ ...old, top }));
    if (top < ROW !== follow) onFollow(top < ROW);
    if (top + 2 * box.current.clientHeight > rows.length * ROW) requests.loadOlder();
  };
  const first = Math.max(0, Math.floor(view.top / ROW) - BEYOND);
  const shown = positions(rows, first, first + Math.ceil(view.height / ROW) + 2 * BEYOND, current);
  const focusable = rows.some((row) => row.id === current) ? current : rows[0]?.id;
  return html`<div
    class="grid"
    role="grid"
    aria-label="Requests"
    aria-rowcount=${requests.matching + 1}
    aria-colcount=${COLUMNS.length}
  >
    <div role="rowgroup" class="columns">
      <div role="row" aria-rowindex="1" class="line">
        ${COLUMNS.map((column) => html`<span role="columnheader" class=${column.name}>${column.title}</span>`)}
      </div>
    </div>
    <div role="rowgroup" class="rows" ref=${box} onScroll=${scroll}>
      <div role="presentation" class="runway" style=${{ height: `${rows.length * ROW}px` }}>
        ${shown.map(
          (at) =>
            html`<${Row}
              key=${rows[at].id}
              summary=${rows[at]}
              at=${at}
              focusable=${rows[at].id === focusable}
              opened=${rows[at].id === opened}
              onCurrent=${onCurrent}
              onOpen=${onOpen}
            />`,
        )}
      </div>
    </div>
  </div>`;
}

function Row({ summary, at, focusable, opened, onCurrent, onOpen }) {
  const failed = !summary.live && (summary.code || summary.status >= 400);
  return html`<div
    role="row"
    class="line ${failed ? "is-failed" : ""}"
    data-id=${summary.id}
    aria-rowindex=${at + 2}
    aria-selected=${opened ? "true" : "false"}
    tabindex=${focusable ? 0 : -1}
    style=${{ transform: `translateY(${at * ROW}px)` }}
    onFocus=${() => onCurrent(summary.id)}
    onClick=${() => onOpen(summary.id)}
  >
    ${COLUMNS.map(({ name, show, tooltip }) => {
      return html`<span role="gridcell" class=${name} title=${tooltip?.(summary)}>${show(summary)}</span>`;
    })}
  </div>`;
}

// The row with the focus stays in the document wherever it is, or the focus would be lost with it; and it stays in its
// order, since an element that is moved loses the focus, too.
function positions(rows, first, end, current) {
  const shown = [];
  for (let at = first; at < Math.min(end, rows.length); at += 1) shown.push(at);
  const focused = rows.findIndex((row) => row.id === current);
  if (focused >= end) shown.push(focused);
  else if (focused >= 0 && focused < first) shown.unshift(focused);
  return shown;
}

function useSize(box, onHeight) {
  useEffect(() => {
    const observer = new ResizeObserver(() => box.current && onHeight(box.current.clientHeight));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
}

// New rows come in above: the view stays on its rows, or on the newest where it follows them.
function useAnchor(box, rows, follow) {
  const before = useRef(null);
  useLayoutEffect(() => {
    if (follow) box.current.scrollTop = 0;
    else if (before.current !== null) {
      const moved = rows.findIndex((row) => row.id === before.current);
      if (moved > 0) box.current.scrollTop += moved * ROW;
    }
    before.current = rows[0]?.id ?? null;
  }, [rows, follow]);
}

// The row that the keys moved to is scrolled into the view, and gets the focus.
function useShown(box, rows, current, moves) {
  useLayoutEffect(() => {
    const at = rows.findIndex((row) => row.id === current);
    if (at < 0 || moves === 0) return;
    box.current.querySelector("[tabindex='0']").focus({ preventScroll: true });
    const { scrollTop, clientHeight } = box.current;
    if (at * ROW < scrollTop) box.current.scrollTop = at * ROW;
    else if ((at + 1) * ROW > scrollTop + clientHeight) box.current.scrollTop = (at + 1) * ROW - clientHeight;
  }, [moves]);
}

/**
 * The line below the list: how many requests there are, and those that came while the list stood still. `onForget` is
 * null where they cannot be forgotten.
 */
export function ListFoot({ requests, follow, onNewest, onForget }) {
  const held = requests.held.size;
  return html`<footer class="list-foot">
    <span>${count(requests.matching)} of ${count(requests.total)}</span>
    ${held > 0 && html`<span class="held">${count(held)} waiting</span>`}
    <span class="push"></span>
    ${!follow && html`<button onClick=${onNewest}>Newest</button>`}
    ${onForget && requests.total > 0 && html`<button onClick=${onForget}>Forget</button>`}
  </footer>`;
}
