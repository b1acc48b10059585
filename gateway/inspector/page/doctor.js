/** What the doctor finds about a backend; it asks, which costs money, only after a question. */

import { askJson } from "./api.js";
import { Dialog } from "./dialog.js";
import { counted } from "./figures.js";
import { html } from "./html.js";
import { useLoaded, waiting } from "./loaded.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

// The last report of each backend, while this tab is open.
const reports = new Map();
const FAULTY = ["broken", "crashed", "todo"];

/** `allowed`: the gateway sends at all. */
export function DoctorDialog({ allowed, onClose }) {
  const loaded = useLoaded((signal) => askJson("doctor", { signal }), "doctor");
  return html`
    <${Dialog} title="Doctor" wide onClose=${onClose}>
      ${
        loaded.value === null
          ? html`<p class="empty">${waiting(loaded)}</p>`
          : html`<${Examination} allowed=${allowed} ...${loaded.value} />`
      }
    </${Dialog}>`;
}

function Examination({ allowed, backends, questions }) {
  const [name, setName] = useState(backends[0] ?? "");
  const [state, setState] = useState({ asking: "", error: null });
  const ask = async () => {
    if (state.asking) return;
    setState({ asking: name, error: null });
    await askJson("doctor", { method: "POST", body: { backend: name } }).then(
      (section) => {
        reports.set(name, section);
        setState({ asking: "", error: null });
      },
      (error) => setState({ asking: "", error }),
    );
  };
  const report = reports.get(name);
  return html`<div class="choices">
      <label
        >Backend
        <select value=${name} onChange=${(event) => setName(event.target.value)}>
          ${backends.map((one) => html`<option value=${one}>${one}</option>`)}
        </select></label
      >
      ${
        allowed &&
        name &&
        html`<button class="primary" aria-disabled=${state.asking ? "true" : "false"} onClick=${ask}>
          Ask it up to ${counted(questions, "question")}
        </button>`
      }
    </div>
    ${
      allowed
        ? html`<p class="dim">That may cost money: they are sent to the backend with the gateway's own credential.</p>`
        : html`<p>
            This page asks nothing: inspector.send is false. <code>dragoman doctor ${name}</code> asks in a terminal.
          </p>`
    }
    <div aria-live="polite">
      ${state.asking && html`<p>${visible(state.asking)} is being asked ...</p>`}
      ${state.error && html`<p class="banner error" role="alert">${state.error.message}</p>`}
      ${!state.asking && report !== undefined && html`<${Report} report=${report} />`}
    </div>`;
}

function Report({ report }) {
  const faulty = report.findings.filter(({ finding }) => FAULTY.includes(finding.verdict));
  const good = report.findings.filter(({ finding }) => finding.verdict === "ok");
  const skipped = report.findings.length - good.length - faulty.length;
  return html`<p><strong>${visible(report.name)}</strong> <span class="dim">${visible(report.about)}</span></p>
    <p>
      ${counted(good.length, "check")} in order, ${counted(faulty.length, "finding")}${
        skipped > 0 && `, ${counted(skipped, "check")} not tried`
      }.
    </p>
    ${
      faulty.length > 0 &&
      html`<div class="scroll-box" tabindex="0" role="group" aria-label="Findings">
        <ul class="notices">
          ${faulty.map((one) => html`<${Finding} key=${one.id} checked=${one} />`)}
        </ul>
      </div>`
    }
    ${report.can.length > 0 && html`<p><span class="dim">It can:</span> ${visible(report.can.join(", "))}</p>`}
    ${report.cannot.length > 0 && html`<p><span class="dim">It cannot:</span> ${visible(report.cannot.join(", "))}</p>`}
    ${report.suggestions.length > 0 && html`<${Suggestions} name=${report.name} keys=${report.suggestions} />`}`;
}

// The doctor has tried them. The page writes no file.
function Suggestions({ name, keys }) {
  const written = JSON.stringify(settingsOf(keys), null, 2);
  return html`<p class="dim">
      Suggested in settings.json, and tried; <code>dragoman doctor ${visible(name)} --write</code> writes it:
    </p>
    <pre class="bytes" tabindex="0" role="region" aria-label="Suggested settings">${visible(written)}</pre>`;
}

// As the file has them: each key in the objects that lead to it. A backend may have any name, also that of a prototype.
function settingsOf(keys) {
  const settings = Object.create(null);
  for (const { path, value } of keys) {
    let place = settings;
    for (const name of path.slice(0, -1)) place = place[name] ??= Object.create(null);
    place[path.at(-1)] = value;
  }
  return settings;
}

function Finding({ checked: { id, name, finding } }) {
  const failed = finding.verdict === "todo" ? "" : "failed";
  return html`<li class="notice ${failed}">
    <p><strong class="rule">${id}</strong> ${name}, ${finding.verdict}: ${visible(finding.detail ?? "")}</p>
    ${finding.evidence && html`<p class="text">${visible(finding.evidence)}</p>`}
    ${finding.advice && html`<p><span class="dim">What to do:</span> ${visible(finding.advice)}</p>`}
  </li>`;
}
