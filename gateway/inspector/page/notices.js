/** Notices and errors: what the gateway changed or saw, why, and what to do. */

import { askJson } from "./api.js";
import { count, counted } from "./figures.js";
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
    ${
      error.backend_words
        ? html`<p class="text"><span class="dim">The backend says:</span> ${visible(error.backend_words)}</p>`
        : error.message && html`<p class="text">${visible(error.message)}</p>`
    }
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

const LEVELS = ["error", "warning", "info", "debug"];

/** Returns [[notice, ...], ...]: equal notices together, and the gravest first. Quiet ones are left out. */
export function grouped(notices) {
  const groups = new Map();
  for (const notice of notices.filter((one) => !one.quiet)) {
    const key = JSON.stringify([notice.rule, notice.stage, notice.action, notice.level]);
    groups.set(key, [...(groups.get(key) ?? []), notice]);
  }
  return [...groups.values()].sort(([one], [other]) => LEVELS.indexOf(one.level) - LEVELS.indexOf(other.level));
}

/** Notices of the whole request, or of one message. Those that only say that something was seen wait to be asked for. */
export function NoticeList({ notices }) {
  const [all, setAll] = useState(false);
  if (notices.length === 0) return null;
  const quiet = notices.filter((notice) => notice.quiet);
  const groups = grouped(notices);
  return html`${
    (groups.length > 0 || all) &&
    html`<ul class="notices" aria-label="Notices">
      ${groups.map(([first, ...more]) =>
        more.length === 0
          ? html`<${NoticeItem} key=${first.number} notice=${first} />`
          : html`<${NoticeGroup} key=${first.number} notices=${[first, ...more]} />`,
      )}
      ${all && quiet.map((notice) => html`<${NoticeItem} key=${notice.number} notice=${notice} />`)}
    </ul>`
  }
  ${
    quiet.length > 0 &&
    html`<button class="link quiet" aria-expanded=${all ? "true" : "false"} onClick=${() => setAll(!all)}>
      ${counted(quiet.length, "observation")} without a change
    </button>`
  }`;
}

// Equal notices: what the first says stands for all, until somebody asks for each.
function NoticeGroup({ notices }) {
  const [all, setAll] = useState(false);
  return html`<${NoticeItem} notice=${notices[0]} times=${notices.length}>
    <button class="link" aria-expanded=${all ? "true" : "false"} onClick=${() => setAll(!all)}>
      ${all ? "Show one" : `Show all ${count(notices.length)}`}
    </button>
    ${
      all &&
      html`<ol class="each">
        ${notices.map(
          (notice) =>
            html`<li>
              ${notice.index !== null && html`<span class="dim">[${notice.index}]</span>`} ${visible(notice.sentence)}
              <${Changes} changes=${notice.changes} />
            </li>`,
        )}
      </ol>`
    }
  </${NoticeItem}>`;
}

// What values of the message were, and what they became.
function Changes({ changes }) {
  if (changes.length === 0) return null;
  return html`<dl class="value-changes">
    ${changes.map(
      ({ field, was, now }) =>
        html`<div>
          <dt>${visible(field)}</dt>
          <dd>
            ${was === null ? html`<span class="dim">nothing</span>` : html`<del class="text">${visible(was)}</del>`}
            <span> → </span>
            ${now === null ? html`<span class="dim">nothing</span>` : html`<ins class="text">${visible(now)}</ins>`}
          </dd>
        </div>`,
    )}
  </dl>`;
}

/** Returns the notices that stand on none of the rows: those of the whole request. `rows` as in the contract. */
export function unplaced(notices, rows = []) {
  const placed = new Set(rows.flatMap((row) => row.notices));
  return notices.filter((notice) => !placed.has(notice.number));
}

// `times`: it stands for so many equal ones.
function NoticeItem({ notice, times = 1, children }) {
  const [open, setOpen] = useState(false);
  return html`<li class="notice ${notice.action} ${notice.level}" tabindex="-1">
    <p>
      ${times > 1 && html`<span class="times">${count(times)} ×</span> `}<strong class="rule">${notice.rule}</strong> ${visible(notice.sentence)}${" "}
      <span class="dim">${notice.stage}: ${notice.action}</span>${" "}
      ${notice.loses.length > 0 && html`<strong>loses ${notice.loses.join(", ")}</strong> `}
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
    ${times === 1 && html`<${Changes} changes=${notice.changes} />`} ${children}
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
