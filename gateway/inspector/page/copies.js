/** Copies of a request: as a command, a program, a recording or a test; redacted by the gateway. */

import { askJson } from "./api.js";
import { Dialog } from "./dialog.js";
import { counted } from "./figures.js";
import { html } from "./html.js";
import { visible } from "./text.js";
import { useRef, useState } from "./vendor/hooks.mjs";

const FORMS = [
  { name: "curl", title: "curl", file: "request.sh" },
  { name: "python", title: "Python", file: "request.py" },
  { name: "pytest", title: "pytest", file: "test_request.py" },
  { name: "recording", title: "Recording", file: "request.dragoman.jsonl" },
  { name: "har", title: "HAR", file: "request.har" },
];

/** The address that shows a request in this page. */
export function permalink(id) {
  return `${location.origin}${location.pathname}#request=${encodeURIComponent(id)}`;
}

/** Puts a text on the clipboard. Returns whether the browser let it: it needs https or this machine. */
export async function copyText(text) {
  if (navigator.clipboard === undefined) return false;
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  );
}

/** `absent`: there are no contents, only the link can be copied. */
export function CopyDialog({ id, absent, onClose, announce }) {
  const [made, setMade] = useState(null);
  const asked = useRef("");
  const show = async (title, file, text, note) => {
    const copied = await copyText(text);
    const outcome = copied
      ? `${title} is on the clipboard.`
      : "The browser gives this page no clipboard: copy the text below.";
    setMade({ text, file, note: `${outcome} ${note}` });
    announce(outcome);
  };
  // What was asked for last is what is shown and copied.
  const make = async ({ name, title, file }) => {
    asked.current = name;
    setMade({ text: "", note: `Making ${title} ...` });
    const last = (show) => (result) => asked.current === name && show(result);
    await askJson("export", { query: { id, as: name } }).then(
      last(({ content, removed, differences }) => show(title, file, content, redaction(removed, differences))),
      last((error) => setMade({ text: "", note: error.message })),
    );
  };
  const link = () => {
    asked.current = "";
    show("The link", "", permalink(id), "");
  };
  return html`
    <${Dialog} title="Copy the request" onClose=${onClose}>
      <div class="forms">
        ${FORMS.map((form) => html`<button disabled=${absent} onClick=${() => make(form)}>${form.title}</button>`)}
        <button onClick=${link}>Link</button>
      </div>
      ${absent && html`<p class="dim">The contents of this request are not here, so only its link can be copied.</p>`}
      ${made && html`<p role="status">${made.note}</p>`}
      ${
        made?.text &&
        html`<pre class="bytes" tabindex="0" role="region" aria-label="Copy">${visible(made.text)}</pre>
          ${made.file && html`<button onClick=${() => save(made.file, made.text)}>Save as ${made.file}</button>`}`
      }
    </${Dialog}>`;
}

function redaction(removed, differences) {
  const secrets = removed > 0 ? `, ${counted(removed, "secret")} removed` : "";
  const kept = differences.length === 0 ? "" : ` Redacted, it behaves otherwise: ${differences.join("; ")}`;
  return `Words are replaced${secrets}.${kept}`;
}

function save(file, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = file;
  link.click();
  URL.revokeObjectURL(link.href);
}
