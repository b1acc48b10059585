/** Shows text that others wrote: always as text nodes, with what is invisible or turns the line around made visible. */

import { html } from "./html.js";
import { count } from "./figures.js";
import { focusAround } from "./focus.js";
import { hasFound, marked } from "./found.js";
import { useState } from "./vendor/hooks.mjs";

// Controls but tab and line feed, marks and overrides of the direction, zero width, line separators, lone surrogates.
const HIDDEN =
  /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\p{Cs})/u;
const MOST_OPEN = 100_000;
const SHORT = { characters: 700, lines: 12 };

/**
 * Returns nodes for a text. Hidden characters stay in it, each in an element that says its code point, and the words
 * that the filter searches are marked.
 */
export function visible(text) {
  return marked(text, withCodes);
}

function withCodes(text) {
  if (!HIDDEN.test(text)) return text;
  return text
    .split(HIDDEN)
    .map((part, at) => (at % 2 ? html`<span class="hidden-character" data-code=${codeOf(part)}>${part}</span>` : part));
}

function codeOf(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * A text of any length; a long one shows its beginning until somebody asks for the rest. `open`: all of it at once.
 * `before`: the text that it was; the part that changed is marked where both have most in common.
 */
export function Text({ text, before = null, open = false, class: name = "" }) {
  const [all, setAll] = useState(false);
  const short = beginning(text);
  const shown = open || all || isFoundBehind(text, short) ? text : short;
  const more = shown.length < text.length;
  const length = count(text.length);
  const showAll = (event) => {
    const keepFocus = focusAround(event.currentTarget);
    setAll(true);
    keepFocus();
  };
  return html`<span class="text ${name}" dir="auto"
      >${before === null || more ? withLineEnds(shown) : withChange(before, shown)}</span
    >
    ${more && html`<button class="more" onClick=${showAll}>Show all ${length} characters</button>`}`;
}

// What is searched for is shown, wherever it stands in a text that is not very long.
function isFoundBehind(text, short) {
  return short.length < text.length && text.length < MOST_OPEN && hasFound(text) && !hasFound(short);
}

// Marks what stands between the common beginning and the common end of both texts.
function withChange(before, text) {
  const most = Math.min(before.length, text.length);
  let start = 0;
  while (start < most && before[start] === text[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === text.at(-1 - end)) end += 1;
  if (start + end < 0.4 * text.length) return withLineEnds(text);
  const [common, changed, rest] = [
    text.slice(0, start),
    text.slice(start, text.length - end),
    text.slice(text.length - end),
  ];
  return [visible(common), changed && html`<mark>${visible(changed)}</mark>`, withLineEnds(rest)];
}

// Line feeds at the end stay in the text, but make no empty lines.
function withLineEnds(text) {
  const words = text.trimEnd();
  return words === text
    ? visible(text)
    : [visible(words), html`<span class="line-ends">${text.slice(words.length)}</span>`];
}

function beginning(text) {
  let end = 0;
  for (let line = 0; line < SHORT.lines; line += 1) {
    end = text.indexOf("\n", end) + 1;
    if (end === 0) break;
  }
  const most = end === 0 ? SHORT.characters : Math.min(end, SHORT.characters);
  return text.length <= most * 1.3 ? text : text.slice(0, most);
}
