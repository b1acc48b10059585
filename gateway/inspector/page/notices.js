/** Notices and errors: what the gateway changed or saw, why, and what to do. */

import { askJson } from "./api.js";
import { html } from "./html.js";
import { useCommands } from "./keys.js";
import { useLoaded, waiting } from "./loaded.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

/** The error that ended the request, first of all; null shows nothing. */
export function ErrorBanner({ error }) {
  if (error === null) return null;
  return html`<section class="banner error" role="group" aria-label="Error">
    <p>
      <strong>${error.status} ${visible(error.code)}</strong>
      ${error.phase && html`${" "}<span class="dim">while: ${error.phase}</span>`}
    </p>
    <p class="text">${visible(error.message)}</p>
    <dl>
      ${
        error.cause &&
        html`<div>
          <dt>Means</dt>
          <dd>${visible(error.cause)}</dd>
        </div>`
      }
      ${
        error.came &&
        html`<div>
          <dt>Came</dt>
          <dd class="text">${visible(error.came)}</dd>
        </div>`
      }
      ${
        error.expected &&
        html`<div>
          <dt>Expected</dt>
          <dd>${visible(error.expected)}</dd>
        </div>`
      }
      ${
        error.advice &&
        html`<div>
          <dt>What to do</dt>
          <dd>${visible(error.advice)}</dd>
        </div>`
      }
    </dl>
  </section>`;
}

/** Notices of the whole request, or of one message. */
export function NoticeList({ notices }) {
  if (notices.length === 0) return null;
  return html`<ul class="notices" aria-label="Notices">
    ${notices.map((notice) => html`<${NoticeItem} key=${notice.number} notice=${notice} />`)}
  </ul>`;
}

/** Returns the notices that stand on none of the rows: those of the whole request. `rows` as in the contract. */
export function unplaced(notices, rows = []) {
  const placed = new Set(rows.flatMap((row) => row.notices));
  return notices.filter((notice) => !placed.has(notice.number));
}

function NoticeItem({ notice }) {
  const [open, setOpen] = useState(false);
  return html`<li class="notice ${notice.action}" tabindex="-1">
    <p>
      <strong class="rule">${notice.rule}</strong> ${visible(notice.sentence)}${" "}
      <span class="dim">${notice.stage}: ${notice.action}</span>${" "}
      <button
        class="link"
        aria-expanded=${open ? "true" : "false"}
        aria-label=${`Why ${notice.rule}?`}
        onClick=${() => setOpen(!open)}
      >
        Why?
      </button>
    </p>
    ${notice.advice && html`<p><span class="dim">What to do:</span> ${visible(notice.advice)}</p>`}
    ${open && html`<${RuleText} rule=${notice.rule} />`}
  </li>`;
}

// What the documentation says of a rule.
function RuleText({ rule }) {
  const loaded = useLoaded((signal) => askJson(`rules/${encodeURIComponent(rule)}`, { signal }), rule);
  return html`<p class="rule-text">${loaded.value === null ? waiting(loaded) : loaded.value.text}</p>`;
}

/** Offers the keys that go from notice to notice. */
export function useNoticeKeys() {
  const go = (by) => {
    const notices = [...document.querySelectorAll(".request .notice")];
    if (notices.length === 0) return;
    const at = notices.indexOf(document.activeElement);
    const next = notices[at < 0 ? (by > 0 ? 0 : notices.length - 1) : (at + by + notices.length) % notices.length];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  useCommands({ nextNotice: () => go(1), previousNotice: () => go(-1) });
}
