/** The list of requests: a grid of which only the visible rows are in the document. */

import { count } from "./figures.js";
import { html } from "./html.js";
import { COLUMNS, Row } from "./row.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.mjs";

// CSS pixels; the style sheet has the same numbers. In a narrow list, a row has two lines.
const ROW = 27;
const TALL_ROW = 46;
const NARROW = 640;
const BEYOND = 8; // rows outside the window, on each side

const FAILED = "failed:yes";

/**
 * `current`: the id of the row that the keys are at; `moves` counts how often they moved, which brings the focus there.
 * `opened`: the id of the row that is shown beside the list, and `marked` that of the one to compare another with;
 * `veiled`: the words are replaced by others; `priced`: there are costs.
 */
export function RequestList(props) {
  const { requests, current, moves, opened, marked, follow, veiled, priced, onCurrent, onOpen, onFollow } = props;
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 800, width: 1200 });
  const rows = requests.rows;
  const tall = view.width < NARROW ? TALL_ROW : ROW;
  const setTop = (top) => setView((old) => (old.top === top ? old : { ...old, top }));
  useSize(box, (size) => setView((old) => ({ ...old, ...size })));
  const anchor = useAnchor(box, rows, follow, tall, setTop);
  useShown(box, rows, current, moves, tall, view.height);
  const scroll = () => {
    const top = box.current.scrollTop;
    anchor.current = anchorAt(rows, top, tall);
    setTop(top);
    if (top < tall !== follow) onFollow(top < tall);
    if (top + 2 * box.current.clientHeight > rows.length * tall) requests.loadOlder();
  };
  const first = Math.max(0, Math.floor(view.top / tall) - BEYOND);
  const shown = positions(rows, first, first + Math.ceil(view.height / tall) + 2 * BEYOND, current);
  const focusable = rows.some((row) => row.id === current) ? current : rows[0]?.id;
  return html`<div
    class="grid ${tall === ROW ? "" : "narrow"} ${priced ? "priced" : ""}"
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
      <div role="presentation" class="runway" style=${{ height: `${rows.length * tall}px` }}>
        ${shown.map(
          (at) =>
            html`<${Row}
              key=${rows[at].id}
              summary=${rows[at]}
              at=${at}
              top=${at * tall}
              focusable=${rows[at].id === focusable}
              opened=${rows[at].id === opened}
              marked=${rows[at].id === marked}
              veiled=${veiled}
              onCurrent=${onCurrent}
              onOpen=${onOpen}
            />`,
        )}
      </div>
    </div>
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

function useSize(box, onSize) {
  useEffect(() => {
    const measure = () => box.current && onSize({ height: box.current.clientHeight, width: box.current.clientWidth });
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
}

// New rows come in above: the view stays on its rows, or on the newest where it follows them. `onTop` gets where it is
// then, before anything is painted. Returns the row at the top of the view, and how far it is scrolled out.
function useAnchor(box, rows, follow, tall, onTop) {
  const anchor = useRef(null);
  useLayoutEffect(() => {
    const at = follow ? -1 : rows.findIndex((row) => row.id === anchor.current?.id);
    if (follow) box.current.scrollTop = 0;
    else if (at >= 0) box.current.scrollTop = at * tall + Math.min(anchor.current.offset, tall - 1);
    anchor.current = anchorAt(rows, box.current.scrollTop, tall);
    onTop(box.current.scrollTop);
  }, [rows, follow, tall]);
  return anchor;
}

function anchorAt(rows, top, tall) {
  const row = rows[Math.floor(top / tall)];
  return row === undefined ? null : { id: row.id, offset: top % tall };
}

// The row that the keys moved to is scrolled into the view, and gets the focus. It stays in the view when the list gets
// lower, as where the line below it needs two lines, until somebody scrolls.
function useShown(box, rows, current, moves, tall, height) {
  const placed = useRef({ moves: 0, top: 0 });
  useLayoutEffect(() => {
    const at = rows.findIndex((row) => row.id === current);
    if (at < 0 || moves === 0) return;
    if (placed.current.moves !== moves) box.current.querySelector("[tabindex='0']").focus({ preventScroll: true });
    else if (placed.current.top !== box.current.scrollTop) return;
    const { scrollTop, clientHeight } = box.current;
    if (at * tall < scrollTop) box.current.scrollTop = at * tall;
    else if ((at + 1) * tall > scrollTop + clientHeight) box.current.scrollTop = (at + 1) * tall - clientHeight;
    placed.current = { moves, top: box.current.scrollTop };
  }, [moves, height]);
}

/**
 * The line below the list: how many requests there are, and those that came while the list stood still. `filter` is the
 * text of the filter and `onFilter` gets another; `grouped`: the sessions are shown in its place. `onForget` is null
 * where they cannot be forgotten.
 */
export function ListFoot({ requests, follow, filter, onFilter, grouped, onGroup, onNewest, onForget }) {
  const held = requests.held.size;
  const terms = filter.split(/\s+/).filter(Boolean);
  const failed = terms.includes(FAILED);
  const toggle = () => onFilter((failed ? terms.filter((term) => term !== FAILED) : [...terms, FAILED]).join(" "));
  return html`<footer class="list-foot">
    <span>${count(requests.matching)} of ${count(requests.total)}</span>
    ${held > 0 && html`<span class="held">${count(held)} waiting</span>`}
    <button class="push" aria-pressed=${grouped ? "true" : "false"} onClick=${onGroup}>Sessions</button>
    <button aria-pressed=${failed ? "true" : "false"} onClick=${toggle}>Failed only</button>
    ${!follow && html`<button onClick=${onNewest}>Newest</button>`}
    ${onForget && requests.total > 0 && html`<button onClick=${onForget}>Forget</button>`}
  </footer>`;
}
