/** The head of an opened request: its facts, and what can be done with it. */

import { count, date, duration, price, size, tokens } from "./figures.js";
import { html } from "./html.js";
import { Status } from "./row.js";
import { visible } from "./text.js";

/**
 * `ms` is how long it has taken, of a live request up to now; `route` is null where none was chosen; `mayReveal`: the
 * gateway shows words; `redacted`: there are none in the recording; `closed`: the settings let nobody see them.
 * `onFilter` gets a filter; `onSend` is null where there is no gateway that could send the request again, and
 * `unsendable` says why this one cannot be, or "".
 */
export function Head(props) {
  const { id, summary, ms, route, reveal, mayReveal, redacted, closed, unsendable, marked } = props;
  const { onCopy, onCompare, onSend, onReveal, onClose, onFilter } = props;
  return html`<header class="request-head">
    <div class="title">
      <h2 tabindex="-1">${visible(id)}</h2>
      <div class="actions">
        <button onClick=${onCopy}>Copy</button>
        <button aria-pressed=${marked ? "true" : "false"} onClick=${onCompare}>Compare</button>
        ${onSend && !unsendable && html`<button onClick=${onSend}>Send again</button>`}
        ${mayReveal && html`<button aria-pressed=${reveal ? "true" : "false"} onClick=${onReveal}>Reveal</button>`}
        <button onClick=${onClose} aria-label="Close the request">Close</button>
      </div>
    </div>
    ${summary && html`<${Facts} summary=${summary} ms=${ms} route=${route} onFilter=${onFilter} />`}
    ${onSend && unsendable && html`<p class="replaced">${unsendable}</p>`}
    ${reveal && html`<p class="revealed">Words are shown; the log says so. Secrets stay redacted.</p>`}
    ${mayReveal &&
    !reveal &&
    html`<p class="replaced">Words are replaced by others of the same length. Reveal (r) shows them.</p>`}
    ${closed &&
    html`<p class="replaced">
      Words are replaced by others of the same length. Nobody may reveal them: inspector.reveal is false.
    </p>`}
    ${redacted && html`<p class="replaced">Words were replaced by others of the same length when it was recorded.</p>`}
  </header>`;
}

function Facts({ summary, ms, route, onFilter }) {
  const to = route
    ? `${route.backend} · ${route.adapter}${route.profile ? ` · ${route.profile}` : ""}`
    : summary.backend;
  const facts = [
    ["Status", html`<${Status} summary=${summary} />`],
    ["Model", visible(summary.model || "-")],
    ["Backend", visible(to || "-")],
    ["Client", visible(summary.client || "-")],
    ["Dialect", `${summary.dialect}${summary.stream ? ", stream" : ""}`],
    ["Key", visible(summary.key || "-")],
    ["First byte", duration(summary.first_ms)],
    ["Took", duration(ms)],
    ["Tokens in/out", tokens(summary)],
    ["Cost", price(summary.cost)],
    ["Bytes kept", summary.contents === "kept" ? size(summary.bytes) : "-"],
    [
      "Conversation",
      summary.conversation ? html`<${Conversation} name=${summary.conversation} onFilter=${onFilter} />` : "-",
    ],
    ["Session", summary.session ? html`<${Session} session=${summary.session} onFilter=${onFilter} />` : "-"],
    ["Agent", visible(summary.session?.agent || "-")],
    ["Began", date(summary.began)],
    ["Worker", count(summary.worker)],
  ];
  // On a phone they would fill half of it.
  const isWide = !matchMedia("(max-width: 860px)").matches;
  return html`<details class="facts-box" open=${isWide}>
    <summary>Facts</summary>
    <dl class="facts">
    ${facts
      .filter(([, value]) => value !== "-")
      .map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
    </dl>
  </details>`;
}

function Conversation({ name, onFilter }) {
  const title = "Show the requests of this conversation";
  return html`<button class="link" title=${title} onClick=${() => onFilter(`conv:${name}`)}>${name}</button>`;
}

function Session({ session, onFilter }) {
  const title = "Show the requests of this session";
  const show = () => onFilter(`session:${session.id}`);
  return html`<button class="link" title=${title} onClick=${show}>${visible(session.id)}</button>`;
}
