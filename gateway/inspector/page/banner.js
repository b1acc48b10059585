/** What happened to a request, in one sentence, and what was changed of it, with the reasons. */

import { count } from "./figures.js";
import { html } from "./html.js";
import { grouped } from "./notices.js";
import { visible } from "./text.js";

/** `detail` as in the contract. */
export function Banner({ detail }) {
  const { headline, error, summary, notices, absent } = detail;
  const state = error !== null || summary.code ? "failed" : summary.live ? "live" : "answered";
  return html`<section class="happened ${state}" aria-label="What happened">
    <p><strong>${visible(headline)}</strong></p>
    ${
      absent === null || notices.length > 0
        ? html`<${Changed} groups=${grouped(notices)} />`
        : html`<${Noticed} rules=${summary.rules} />`
    }
  </section>`;
}

// Of a request whose notices are not here, the codes are.
function Noticed({ rules }) {
  if (rules.length === 0) return null;
  return html`<ul class="rules" aria-label="What the gateway did">
    ${rules.map((rule) => html`<li><strong class="rule-name">${visible(rule)}</strong></li>`)}
  </ul>`;
}

function Changed({ groups }) {
  if (groups.length === 0) return html`<p class="dim">The gateway changed nothing that needs a look.</p>`;
  return html`<ul class="rules" aria-label="What the gateway did">
    ${groups.map(
      ([first, ...more]) =>
        html`<li class=${first.level}>
          ${more.length > 0 && html`<span class="times">${count(more.length + 1)} ×</span> `}<strong class="rule-name"
            >${first.rule}</strong
          >${" "} <span class="dim">${first.action}</span> ${visible(first.sentence)}
        </li>`,
    )}
  </ul>`;
}
