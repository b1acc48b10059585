/** Every setting in use, and what sets it: those that somebody has set come first. */

import { askJson } from "./api.js";
import { Dialog } from "./dialog.js";
import { counted } from "./figures.js";
import { html } from "./html.js";
import { useLoaded, waiting } from "./loaded.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

const DEFAULT = "default";

export function SettingsDialog({ onClose }) {
  const [text, setText] = useState("");
  const [all, setAll] = useState(false);
  const loaded = useLoaded((signal) => askJson("effective-settings", { signal }), "settings");
  const rows = loaded.value?.rows.filter((row) => passes(row, text.trim().toLowerCase(), all)) ?? [];
  return html`
    <${Dialog} title="Settings in use" wide onClose=${onClose}>
      <div class="settings-choice">
        <input
          type="search"
          aria-label="Search the settings"
          placeholder="Search: models.*, 8000, default"
          value=${text}
          spellcheck=${false}
          autocomplete="off"
          onInput=${(event) => setText(event.target.value)}
        />
        <button aria-pressed=${all ? "true" : "false"} onClick=${() => setAll(!all)}>Defaults, too</button>
        ${loaded.value && html`<span class="dim" role="status">${counted(rows.length, "setting")}</span>`}
      </div>
      ${loaded.value === null && html`<p class="empty">${waiting(loaded)}</p>`}
      ${
        loaded.value?.fault &&
        html`<section class="banner error" role="group" aria-label="Fault of the file">
          <strong>The file would be refused now.</strong> ${visible(loaded.value.fault)}
        </section>`
      }
      ${loaded.value && html`<${Table} rows=${rows} />`}
    </${Dialog}>`;
}

// A search looks at everything; without one, defaults are left out.
function passes(row, words, all) {
  if (!words) return all || row.differs || row.origin !== DEFAULT;
  const text = `${row.path} ${written(row.value)} ${row.origin}`.toLowerCase();
  return words.split(/\s+/).every((word) => text.includes(word.replaceAll("*", "")));
}

function Table({ rows }) {
  if (rows.length === 0) return html`<p class="empty">No setting passes.</p>`;
  return html`<div class="scroll-box" tabindex="0" role="group" aria-label="Settings">
    <table class="settings">
      <thead>
        <tr>
          <th scope="col">Setting</th>
          <th scope="col">Value</th>
          <th scope="col">Set by</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map((row) => html`<${Row} key=${row.path} row=${row} />`)}
      </tbody>
    </table>
  </div>`;
}

function Row({ row }) {
  return html`<tr class=${row.differs ? "is-changed" : ""}>
    <th scope="row"><code>${visible(row.path)}</code></th>
    <td><code>${visible(written(row.value))}</code></td>
    <td>
      ${visible(row.origin)}${row.differs && html`: <code>${visible(written(row.file))}</code>`}
      ${row.over.map(
        (one) =>
          html`<span class="dim"> over <code>${visible(written(one.value))}</code> (${visible(one.origin)})</span>`,
      )}
    </td>
  </tr>`;
}

function written(value) {
  return JSON.stringify(value);
}
