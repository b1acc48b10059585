/** Where the time of a request went: its marks as one bar, and the long silences of the answer in it. */

import { duration } from "./figures.js";
import { html } from "./html.js";

// Each part of a request ends at a mark; all are milliseconds from its head.
const PARTS = [
  { mark: "read", name: "read" },
  { mark: "prepared", name: "prepare" },
  { mark: "connected", name: "connect" },
  { mark: "head", name: "wait" },
  { mark: "first", name: "first bytes" },
  { mark: "last", name: "stream" },
];
// What stands between the last of them and the end.
const SETTLING = { mark: "end", name: "settle" };
const MISSING = { mark: "missing", name: "waiting for more" };

const SHORTEST_SILENCE = 200;
const SHORTEST_PART = 0.05;

/** Returns from how many milliseconds on a pause between two of these reads is worth a mark. */
export function longSilence(reads) {
  const gaps = reads.map((read) => read.gap ?? 0).sort((a, b) => a - b);
  return Math.max(SHORTEST_SILENCE, 4 * (gaps[gaps.length >> 1] ?? 0));
}

/**
 * `marks` as in the contract; `reads` of the answer are null until they are loaded. Of a `live` request the time up to
 * now, `ms`, is shown; `cut` says what broke the answer, null: nothing.
 */
export function Waterfall({ marks, reads, live, cut, ms }) {
  const parts = partsOf(live ? { ...marks, end: ms } : marks, live || cut !== null);
  const total = parts.at(-1)?.end ?? 0;
  if (total === 0) return null;
  const place = (start, end) => ({ left: `${(100 * start) / total}%`, width: `${(100 * (end - start)) / total}%` });
  const silence = longSilence(reads ?? []);
  const gaps = (reads ?? []).filter((read) => read.number > 0 && read.gap >= silence);
  return html`<section class="waterfall ${cut === null ? "" : "broken"}" aria-label="Times">
    <div class="bar" aria-hidden="true">
      ${parts.map(({ mark, start, end }) => html`<span class="part ${mark}" style=${place(start, end)}></span>`)}
      ${gaps.map(({ t, gap }) => html`<span class="gap" style=${place(t - gap, t)}></span>`)}
    </div>
    <dl>
      ${parts.map(
        (part) =>
          html`<div>
            <dt><span class=${`key ${part.mark}`} aria-hidden="true"></span>${part.name}</dt>
            <dd>${duration(part.end - part.start)}</dd>
          </div>`,
      )}
      ${
        gaps.length > 0 &&
        html`<div>
          <dt><span class="key gap" aria-hidden="true"></span>longest silence</dt>
          <dd>${duration(Math.max(...gaps.map((read) => read.gap)))}</dd>
        </div>`
      }
    </dl>
  </section>`;
}

// Where more is awaited, or no answer came, the part after the last mark that was reached goes on to the end.
function partsOf(marks, awaited) {
  const unreached = PARTS.slice(PARTS.findLastIndex(({ mark }) => isReached(marks[mark])) + 1);
  const last = awaited || !isReached(marks.head) ? (unreached[0] ?? MISSING) : SETTLING;
  const parts = [];
  let start = 0;
  const ended = [...PARTS.map((part) => ({ ...part, end: marks[part.mark] })), { ...last, end: marks.end }];
  for (const { mark, name, end } of ended) {
    if (!isReached(end) || end - start < SHORTEST_PART) continue;
    parts.push({ mark, name, start, end });
    start = end;
  }
  return parts;
}

function isReached(mark) {
  return mark !== null && mark !== undefined;
}
