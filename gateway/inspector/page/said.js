/** What an answer says in all: its text, its thinking, and its calls with their arguments. */

import { counted } from "./figures.js";
import { html } from "./html.js";
import { Text, visible } from "./text.js";

const TITLES = { text: "Text", thinking: "Thinking", call: "Call" };

/** `answer` as `assembled` in the contract; of a `live` request it is what has come so far. `open`: all of it at once. */
export function Said({ answer, live, open = false }) {
  const { parts, finish, total } = answer;
  if (parts.length === 0) return null;
  return html`<section class="said" aria-label="The answer">
    ${parts.map((part, at) => html`<${Part} key=${at} part=${part} open=${open} />`)}
    ${total > parts.length && html`<p class="dim">${counted(total - parts.length, "further part")} not shown here.</p>`}
    <p class="dim">${finish === null ? (live ? "More may come." : "It broke off here.") : `It ended: ${visible(finish)}.`}</p>
  </section>`;
}

function Part({ part, open }) {
  const { kind, text, id, name, cut } = part;
  return html`<div class="part-said ${kind}">
    <p class="who">
      <span class="role">${TITLES[kind]}</span>
      ${name && html`<span class="name">${visible(name)}</span>`} ${id && html`<span class="id">${visible(id)}</span>`}
    </p>
    <${Text} text=${text} open=${open} /> ${cut && html`<p class="dim">Cut here.</p>`}
  </div>`;
}
