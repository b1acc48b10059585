/** Folds messages that show nothing new: those that are alike, and those whose like stands above. */

import { counted } from "./figures.js";
import { hasFound } from "./found.js";

// A run of messages that are alike is folded where it is longer, and of equal changes so many are shown; in a long
// conversation, every run is folded, and the first of equal changes is shown. The newest message is always shown.
const MOST_ALIKE = 3;
const LONG = 20;

const LEFT_OUT = {
  repaired: "left out by the repair",
  trimmed: "left out by the limits",
  sent: "not sent",
};
const UNCHANGED = "unchanged at every stage";
const REPEATED = "changed like those above";

/** Whether something of a row was changed, or a notice about it says more than that something was seen. */
export function isChanged(row, byNumber) {
  return loud(row, byNumber).length > 0 || Object.values(row.cells).some((cell) => cell?.mark !== "=");
}

/**
 * Returns [{start, rows, folded}]: runs of rows. `folded` is what a folded one is called, or "". `byNumber` are the
 * notices by their numbers.
 */
export function runs(rows, byNumber) {
  const found = [];
  const seen = new Map();
  const most = rows.length > LONG ? 0 : MOST_ALIKE;
  rows.forEach((row, at) => {
    const kind = at === rows.length - 1 ? "" : likeness(row, byNumber, seen, Math.max(1, most));
    // What stands between equal changes is folded with them.
    const alike = kind === REPEATED ? UNCHANGED : kind;
    const last = found.at(-1);
    if (last !== undefined && last.alike === alike) {
      last.rows.push(row);
      last.kinds.push(kind);
    } else found.push({ start: at, alike, rows: [row], kinds: [kind] });
  });
  return found.map(({ start, rows, kinds, alike }) => ({
    start,
    rows,
    folded: alike !== "" && rows.length > most ? named(kinds) : "",
  }));
}

// What kind of row it is; "" for one that is always shown. `seen` counts the changes above it, `most` of which are
// shown where they are equal.
function likeness(row, byNumber, seen, most) {
  if (isFound(row)) return "";
  if (!isChanged(row, byNumber)) return UNCHANGED;
  const notices = loud(row, byNumber);
  const [stage] = Object.entries(row.cells).find(([, cell]) => cell?.mark === "-") ?? [];
  if (stage !== undefined && notices.length === 0) return LEFT_OUT[stage];
  const marks = Object.values(row.cells).map((cell) => cell?.mark);
  const change = JSON.stringify([marks, notices.map((notice) => [notice.rule, notice.action])]);
  const times = seen.get(change) ?? 0;
  seen.set(change, times + 1);
  return times < most ? "" : REPEATED;
}

// Whether a word that the filter searches stands in the message.
function isFound(row) {
  return Object.values(row.cells).some((cell) => cell && (hasFound(cell.text) || cell.calls.some(isFoundCall)));
}

function isFoundCall(call) {
  return hasFound(call.name) || hasFound(call.arguments);
}

function loud(row, byNumber) {
  return row.notices.map((number) => byNumber.get(number)).filter((notice) => notice && !notice.quiet);
}

function named(kinds) {
  const counts = [...new Set(kinds)].map((kind) => [kind, kinds.filter((one) => one === kind).length]);
  return counts.map(([kind, times], at) => `${at === 0 ? counted(times, "message") : times} ${kind}`).join(", ");
}
