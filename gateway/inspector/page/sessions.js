/** The sessions of the requests that pass the filter: for each a heading, and below it its agents as a tree. */

import { askJson } from "./api.js";
import { clock, count, counted } from "./figures.js";
import { html } from "./html.js";
import { visible } from "./text.js";
import { useEffect, useState } from "./vendor/hooks.mjs";

const WAIT_MS = 600;
const SHOWN = 200;
const SOURCES = { claude_code: "Claude Code", codex: "Codex", conversation: "conversation" };

/** `requests` is the list beside it: the sessions are asked for again when it changes. `onFilter` gets a filter. */
export function Sessions({ requests, onFilter }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    const asked = new AbortController();
    const load = () =>
      askJson("sessions", { query: { filter: requests.filter }, signal: asked.signal })
        .then((answer) => setFound(answer) ?? setError(null))
        .catch((failure) => asked.signal.aborted || setError(failure));
    const timer = setTimeout(load, found === null ? 0 : WAIT_MS);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [requests.filter, requests.rows]);
  if (error !== null) return html`<p class="sessions refused" role="alert">${error.message}</p>`;
  if (found === null) return null;
  return html`<div class="sessions" role="region" aria-label="Sessions" tabindex="0">
    ${found.sessions.length === 0 && html`<p class="dim">No request here has a session: contents are not kept.</p>`}
    ${found.grouped < found.matching && html`<p class="dim">Of the newest ${count(found.grouped)} requests:</p>`}
    ${found.sessions
      .slice(0, SHOWN)
      .map((session) => html`<${Session} key=${keyOf(session)} session=${session} onFilter=${onFilter} />`)}
  </div>`;
}

function keyOf({ key, source, id }) {
  return JSON.stringify([key, source, id]);
}

function Session({ session, onFilter }) {
  const of = `session:${session.id}${session.key === "-" ? "" : ` key:${session.key}`}`;
  return html`<section>
    <h3>
      <button class="link" title="Show the requests of this session" onClick=${() => onFilter(of)}>
        ${visible(session.id)}
      </button>
      <span class="dim">
        ${SOURCES[session.source]}${session.key === "-" ? "" : ` of ${visible(session.key)}`}, ${figures(session.figures)}
      </span>
    </h3>
    <ul>
      ${session.agents.map((agent) => html`<${Agent} key=${agent.id} agent=${agent} of=${of} onFilter=${onFilter} />`)}
    </ul>
  </section>`;
}

function Agent({ agent, of, onFilter }) {
  const name = agent.id === "" ? "main agent" : visible(agent.id);
  const show = () => onFilter(`${of} ${agent.id === "" ? "-agent:?*" : `agent:${agent.id}`}`);
  return html`<li>
    ${
      agent.figures === null
        ? name
        : html`<button class="link" title="Show the requests of this agent" onClick=${show}>${name}</button>`
    }
    <span class="dim"> ${agent.figures === null ? "no request of it is here" : figures(agent.figures)}</span>
    ${
      agent.agents.length > 0 &&
      html`<ul>
        ${agent.agents.map((below) => html`<${Agent} key=${below.id} agent=${below} of=${of} onFilter=${onFilter} />`)}
      </ul>`
    }
  </li>`;
}

function figures({ requests, live, failed, turns, prompt_tokens, completion_tokens, began, latest }) {
  const parts = [
    counted(requests, "request"),
    live > 0 && `${count(live)} live`,
    failed > 0 && `${count(failed)} failed`,
    turns > 0 && counted(turns, "turn"),
    `${count(prompt_tokens)}/${count(completion_tokens)} tokens`,
    `${clock(began)} to ${clock(latest)}`,
  ];
  return parts.filter(Boolean).join(", ");
}
