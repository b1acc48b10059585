/** The keys of the page: one table, which `?` shows, and the commands that parts of the page offer. */

import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { useLayoutEffect, useRef } from "./vendor/hooks.mjs";

const KEYS = [
  { command: "next", keys: ["j", "ArrowDown"], shown: "j ↓", does: "next request" },
  { command: "previous", keys: ["k", "ArrowUp"], shown: "k ↑", does: "previous request" },
  { command: "first", keys: ["Home"], shown: "Home", does: "newest request" },
  { command: "last", keys: ["End"], shown: "End", does: "oldest request that is loaded" },
  { command: "open", keys: ["Enter"], shown: "Enter", does: "open the request" },
  { command: "back", keys: ["Escape"], shown: "Esc", does: "back to the list" },
  { command: "previousView", keys: ["["], shown: "[", does: "previous view of the request" },
  { command: "nextView", keys: ["]"], shown: "]", does: "next view of the request" },
  { command: "diff", keys: ["d"], shown: "d", does: "difference to the previous request" },
  { command: "compare", keys: ["m"], shown: "m", does: "mark the request; on another one, compare both" },
  { command: "whatIf", keys: ["w"], shown: "w", does: "what if: another profile, other limits" },
  { command: "nextNotice", keys: ["n"], shown: "n", does: "next notice" },
  { command: "previousNotice", keys: ["N"], shown: "N", does: "previous notice" },
  { command: "reveal", keys: ["r"], shown: "r", does: "reveal the words, or hide them" },
  { command: "copy", keys: ["c"], shown: "c", does: "copy the request" },
  { command: "send", keys: ["s"], shown: "s", does: "send the request again, after a question" },
  { command: "tryout", keys: ["t"], shown: "t", does: "try: write a request, and send it" },
  { command: "filter", keys: ["/"], shown: "/", does: "filter" },
  { command: "follow", keys: ["f"], shown: "f", does: "follow the newest request" },
  { command: "sessions", keys: ["g"], shown: "g", does: "sessions, or the list" },
  { command: "pause", keys: ["p"], shown: "p", does: "pause, go on" },
  { command: "settings", keys: [","], shown: ",", does: "settings in use, and what sets them" },
  { command: "doctor", keys: ["x"], shown: "x", does: "the doctor: examine a backend, after a question" },
  { command: "help", keys: ["?"], shown: "?", does: "these keys, and what the filter takes" },
];

// What the filter takes; the gateway reads it (gateway/inspector/filter.py).
const TERMS = [
  { terms: "failed:yes live:yes stream:no changed:yes", means: "what became of it" },
  { terms: "status:5xx code:upstream_*", means: "the outcome; * stands for any text" },
  { terms: "client:codex* model:gpt-* backend:demo-chat key:alice dialect:gemini", means: "where it came from and went to" },
  { terms: "rule:TOOL_* stage:trim", means: "what was changed, and why" },
  { terms: "ms:>2000 first:>500 tok:<100", means: "the time that it took, that of its first byte, its tokens" },
  { terms: "cache:client_* cache:rule", means: "who ended the provider's prompt cache" },
  { terms: "conv:4f1c9a02b7de id:req_*", means: "its conversation, its id" },
  { terms: "session:01a21b15-* agent:a0249*", means: "the session and the agent of its client" },
  { terms: 'Paris "no such file"', means: "words of the contents" },
  { terms: "-code:client_gone -Paris", means: "all but these; every term must hold" },
];

const COMMANDS = new Map(KEYS.flatMap(({ command, keys }) => keys.map((key) => [key, command])));
// These keys mean something else to a control that has the focus.
const OF_CONTROLS = new Set(["Enter", "ArrowDown", "ArrowUp", "Home", "End"]);

const offered = [];

/**
 * Offers commands, {name: function}, exactly as long as the component is in the document. What is offered last comes
 * first.
 */
export function useCommands(commands) {
  const latest = useRef(commands);
  latest.current = commands;
  useLayoutEffect(() => {
    offered.push(latest);
    return () => offered.splice(offered.indexOf(latest), 1);
  }, []);
}

/** Runs the command of a key that was pressed, if somebody offers it. */
export function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]")) return;
  const target = event.target;
  if (target.matches("input, textarea, select")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const row = target.closest("[role=row]");
  if (OF_CONTROLS.has(event.key) && row === null && !target.matches("body, .list")) return;
  const name = COMMANDS.get(event.key);
  const run = offered.findLast(({ current }) => current[name] !== undefined)?.current[name];
  if (run === undefined) return;
  event.preventDefault();
  run();
}

/** The dialog that lists the keys, and what the filter takes. `version` is the gateway's. */
export function KeysDialog({ version, onClose }) {
  return html`
    <${Dialog} title="Keys and filter" onClose=${onClose}>
      <dl class="keys">
        ${KEYS.map(
          ({ shown, does }) =>
            html`<div>
              <dt>${shown.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt>
              <dd>${does}</dd>
            </div>`,
        )}
      </dl>
      <h3>Filter</h3>
      <dl class="terms">
        ${TERMS.map(
          ({ terms, means }) =>
            html`<div>
              <dt><code>${terms}</code></dt>
              <dd>${means}</dd>
            </div>`,
        )}
      </dl>
      <p class="dim">Dragoman ${version}. Its documentation: docs/inspector.md.</p>
    </${Dialog}>`;
}
