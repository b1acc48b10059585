/** A place to try: a request is written, sent through the gateway, and its answer is shown as it comes. */

import { EXAMPLE_TOOL, MOST_BYTES, newDraft, requestOf, ROLES, withForm, withKind } from "./draft.js";
import { counted, duration, size, tokens } from "./figures.js";
import { useFocusOf } from "./focus.js";
import { html } from "./html.js";
import { Said } from "./said.js";
import { NOT_ALLOWED } from "./send.js";
import { Sending } from "./sending.js";
import { visible } from "./text.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.mjs";

/** What is written and what was sent last, while the tab is open: a request that is opened in between changes neither. */
export class Tryout {
  constructor(models) {
    this.draft = newDraft(models);
    this.sending = new Sending();
  }

  /** Takes another draft; what came of the one before is no longer shown, unless it is still coming. */
  edit(draft) {
    this.draft = draft;
    if (!this.sending.busy) this.sending.clear();
  }
}

/**
 * `tryout` is a Tryout, `settings` as the gateway shows them. `onOpen` gets the id of the request that was sent, and
 * that of the one it was made of.
 */
export function TryoutPane({ tryout, settings, onOpen, onClose, announce }) {
  const [, redraw] = useState(0);
  const [fault, setFault] = useState("");
  const heading = useRef(null);
  const body = useRef(null);
  useFocusOf(body);
  const { draft, sending } = tryout;
  useLayoutEffect(() => heading.current.focus(), []);
  useEffect(() => {
    sending.onChange = () => redraw((count) => count + 1);
    return () => (sending.onChange = () => {});
  }, []);
  const put = (draft) => {
    tryout.draft = draft;
    redraw((count) => count + 1);
  };
  // `work` may find that what is written cannot be sent.
  const attempt = (work) => {
    try {
      setFault("");
      work();
    } catch (error) {
      setFault(error.message);
    }
  };
  const send = () => {
    if (!settings.send) return announce(NOT_ALLOWED);
    if (sending.busy) return;
    attempt(() => {
      const request = requestOf(draft);
      const bytes = sizeOf(request.body);
      if (bytes > MOST_BYTES) throw new Error(`The body has ${size(bytes)}: the page sends up to 1 MB.`);
      announce("The request is sent.");
      sending.send(request).then(() => announce(outcomeOf(sending)));
    });
  };
  const onKey = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    send();
  };
  const submit = (event) => {
    event.preventDefault();
    send();
  };
  return html`<section class="request tryout" aria-label="Try a request">
    <header class="request-head">
      <div class="title">
        <h2 tabindex="-1" ref=${heading}>${draft.kind === "json" && draft.like ? "Edit and send" : "Try a request"}</h2>
        <div class="actions">
          <${Kinds} kind=${draft.kind} onKind=${(kind) => attempt(() => put(withKind(draft, kind)))} />
          <button onClick=${onClose} aria-label="Close the place to try">Close</button>
        </div>
      </div>
    </header>
    <div class="request-body" tabindex="0" role="group" aria-label="Request and answer" ref=${body}>
      <form onSubmit=${submit} onKeyDown=${onKey}>
        ${
          draft.kind === "form"
            ? html`<${Form} form=${draft.form} models=${settings.models} onForm=${(form) => put(withForm(draft, form))} />`
            : html`<${Body} draft=${draft} onDraft=${(fields) => put({ ...draft, ...fields })} />`
        }
        ${fault && html`<p class="banner error" role="alert">${visible(fault)}</p>`}
        <${SendLine} allowed=${settings.send} sending=${sending} />
      </form>
      <${Outcome} sending=${sending} onOpen=${onOpen} />
    </div>
  </section>`;
}

function Kinds({ kind, onKind }) {
  const choice = (name, title) =>
    html`<button aria-pressed=${kind === name ? "true" : "false"} onClick=${() => onKind(name)}>${title}</button>`;
  return html`<div class="choice" role="group" aria-label="Write it as">${choice("form", "Form")} ${choice("json", "JSON")}</div>`;
}

function Form({ form, models, onForm }) {
  const { model, messages, tools, stream } = form;
  const change = (at, fields) =>
    onForm({ messages: messages.map((one, place) => (place === at ? { ...one, ...fields } : one)) });
  const remove = (at) => onForm({ messages: messages.filter((_, place) => place !== at) });
  const add = () => onForm({ messages: [...messages, { role: "user", content: "" }] });
  return html`<label class="wide">Model
      <input value=${model} list="models" spellcheck=${false} autocomplete="off" onInput=${(event) => onForm({ model: event.target.value })} />
    </label>
    <datalist id="models">${models.map((name) => html`<option value=${name}></option>`)}</datalist>
    ${messages.map(
      (message, at) =>
        html`<${Message}
          key=${at}
          number=${at + 1}
          message=${message}
          onChange=${(fields) => change(at, fields)}
          onRemove=${messages.length > 1 ? () => remove(at) : null}
        />`,
    )}
    <div class="choices">
      <button type="button" onClick=${add}>Add a message</button>
      <label><input type="checkbox" checked=${stream} onChange=${(event) => onForm({ stream: event.target.checked })} /> Stream</label>
      ${tools.trim() === "" && html`<button type="button" onClick=${() => onForm({ tools: EXAMPLE_TOOL })}>Add a tool</button>`}
    </div>
    ${
      tools.trim() !== "" &&
      html`<label class="wide">Tools, as JSON. Calls are shown, never run
        <textarea rows="7" spellcheck=${false} value=${tools} onInput=${(event) => onForm({ tools: event.target.value })}></textarea>
      </label>`
    }`;
}

function Message({ number, message, onChange, onRemove }) {
  return html`<div class="message" role="group" aria-label=${`Message ${number}`}>
    <div class="choices">
      <label>Role
        <select value=${message.role} onChange=${(event) => onChange({ role: event.target.value })}>
          ${ROLES.map((role) => html`<option value=${role}>${role}</option>`)}
        </select></label>
      ${onRemove && html`<button type="button" aria-label=${`Remove message ${number}`} onClick=${onRemove}>Remove</button>`}
    </div>
    <textarea
      rows="3"
      aria-label=${`Text of message ${number}`}
      value=${message.content}
      onInput=${(event) => onChange({ content: event.target.value })}
    ></textarea>
  </div>`;
}

function Body({ draft, onDraft }) {
  const { path, body, like } = draft;
  return html`${
      like &&
      html`<p class="dim">
        This is what ${visible(like)} came with, and its headers are sent, too. Secrets in it are placeholders, such as${" "}
        <code>[key:openai:51]</code>: what stands here is what is sent.
      </p>`
    }
    <label class="wide">Path
      <input value=${path} spellcheck=${false} autocomplete="off" onInput=${(event) => onDraft({ path: event.target.value })} />
    </label>
    <label class="wide">Body, ${size(sizeOf(body))} of up to 1 MB
      <textarea rows="16" spellcheck=${false} value=${body} onInput=${(event) => onDraft({ body: event.target.value })}></textarea>
    </label>`;
}

function SendLine({ allowed, sending }) {
  const off = !allowed || sending.busy;
  return html`<div class="choices">
      <button class="primary" aria-disabled=${off ? "true" : "false"} aria-describedby="what-it-costs">Send</button>
      ${sending.busy && html`<button type="button" onClick=${() => sending.cancel()}>Cancel</button>`}
    </div>
    <p id="what-it-costs" class=${allowed ? "dim" : "banner warn"}>${allowed ? COSTS : NOT_ALLOWED}</p>`;
}

const COSTS =
  "That may cost money. It is served like a client's request (Ctrl+Enter sends it, too). Its key is “inspector”, whose limits hold.";

function Outcome({ sending, onOpen }) {
  const section = useRef(null);
  const { id, like, parts, end, error, busy, cancelled } = sending;
  // Below a long request nobody would see that something comes.
  useEffect(() => section.current?.scrollIntoView({ block: "nearest" }), [busy]);
  if (!busy && id === null && error === null && !cancelled) return null;
  const calls = parts.filter((part) => part.kind === "call").length;
  return html`<section class="outcome" aria-label="Outcome" ref=${section}>
    <div class="choices">
      <strong>${statusOf(sending)}</strong>
      ${end && html`<span class="dim">${factsOf(end)}</span>`}
      ${id && html`<button class="link" onClick=${() => onOpen(id, like)}>Open the request ${visible(id)}</button>`}
    </div>
    ${error && html`<${Failure} status=${error.status} code=${error.code} message=${error.message} />`}
    ${end?.code && html`<${Failure} ...${end} />`}
    <${Said}
      answer=${{ parts, finish: end?.finish ?? null, total: parts.length }}
      live=${busy}
      open=${true}
    />
    ${calls > 0 && html`<p class="dim">${counted(calls, "call")}: shown, and not run.</p>`}
  </section>`;
}

function Failure({ status, code, message, advice = "" }) {
  return html`<div class="banner error" role="group" aria-label="Error">
    <p><strong>${status || "No answer"} ${visible(code)}</strong></p>
    <p class="text" dir="auto">${visible(message)}</p>
    ${advice && html`<p><span class="dim">What to do:</span> ${visible(advice)}</p>`}
  </div>`;
}

function statusOf({ id, parts, end, error, cancelled }) {
  if (error !== null) return id === null ? "It was not sent." : "The answer was lost.";
  if (cancelled) return "Cancelled.";
  if (end === null) return id === null ? "Sending ..." : parts.length === 0 ? "Waiting for the answer ..." : "The answer is coming ...";
  if (end.code) return parts.length === 0 ? "It failed." : "It failed while the answer came.";
  return "Done.";
}

const outcomeOf = (sending) => (sending.end?.code ? `${statusOf(sending)} ${sending.end.code}` : statusOf(sending));

function factsOf(end) {
  const counts = tokens(end);
  const facts = [end.status || "", duration(end.ms), counts === "-" ? "" : `${counts} tokens in/out`];
  return [...facts, end.changes && `changed: ${end.changes.replaceAll("=", " ")}`].filter(Boolean).join(", ");
}

const sizeOf = (text) => new TextEncoder().encode(text).length;
