/** Marks the words that the filter searches, wherever text of others is shown. They are kept in this module. */

import { html } from "./html.js";

// More marks in one text would be more than anybody looks at.
const MOST = 200;

let pattern = null;

/** Takes the words of the filter that stand in the contents of the requests that pass it. */
export function setFound(words) {
  const escaped = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  pattern = escaped.length === 0 ? null : new RegExp(`(${escaped.join("|")})`, "iu");
}

/** Whether one of the words stands in a text. */
export function hasFound(text) {
  return pattern !== null && pattern.test(text);
}

/** Returns nodes for a text whose words are marked; `plain` returns those of a part of it. */
export function marked(text, plain) {
  if (!hasFound(text)) return plain(text);
  const parts = text.split(new RegExp(pattern.source, "giu"), 2 * MOST);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const nodes = parts.map((part, at) => (at % 2 ? html`<mark class="found">${plain(part)}</mark>` : plain(part)));
  return length < text.length ? [...nodes, plain(text.slice(length))] : nodes;
}
