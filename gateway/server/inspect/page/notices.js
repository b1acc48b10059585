/** Notices and errors: what the gateway changed or saw, why, and what to do. */

import { html } from "./html.js";
import { useCommands } from "./keys.js";
import { visible } from "./text.js";

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
  return html`<li class="notice ${notice.action}" tabindex="-1">
    <p>
      <strong class="rule">${notice.rule}</strong> ${visible(notice.sentence)}${" "}
      <span class="dim">${notice.stage}: ${notice.action}${notice.docs && html`, see ${docsOf(notice.docs)}`}</span>
    </p>
    ${notice.advice && html`<p><span class="dim">What to do:</span> ${visible(notice.advice)}</p>`}
  </li>`;
}

// A page of the documentation is a link only where it is an address.
function docsOf(docs) {
  return /^https?:\/\//.test(docs)
    ? html`<a href=${docs} rel="noreferrer" target="_blank">${docs}</a>`
    : html`<code>${docs}</code>`;
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
