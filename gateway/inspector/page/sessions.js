/** The sessions of the requests that pass the filter: each with its agents as a tree, and its requests in it. */

import { askJson } from "./api.js";
import { clock, count, counted, duration } from "./figures.js";
import { html } from "./html.js";
import { SessionRequests } from "./session.js";
import { visible } from "./text.js";
import { useEffect, useState } from "./vendor/hooks.mjs";

const WAIT_MS = 600;
const SHOWN = 200;
const SOURCES = { claude_code: "Claude Code", codex: "Codex", conversation: "Conversation" };

/**
 * `requests` is the list, in whose place they stand: they are asked for again when it changes. `reveal`: with words;
 * `opened` is the id of the request beside them. `onFilter` gets a filter, `onOpen` an id.
 */
export function Sessions({ requests, reveal, opened, onFilter, onOpen }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [unfolded, setUnfolded] = useState(new Set());
  useEffect(() => {
    if (requests.listed === null) return undefined;
    const asked = new AbortController();
    const query = { filter: requests.listed, reveal: reveal ? 1 : null };
    const load = () =>
      askJson("sessions", { query, signal: asked.signal })
        .then((answer) => setFound(answer) ?? setError(null))
        .catch((failure) => asked.signal.aborted || setError(failure));
    const timer = setTimeout(load, found === null ? 0 : WAIT_MS);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [requests.listed, requests.rows, reveal]);
  if (error !== null) return html`<p class="sessions refused" role="alert">${error.message}</p>`;
  if (found === null) return null;
  const toggle = (key, isOpen) => {
    const keys = new Set(unfolded);
    if (isOpen) keys.add(key);
    else keys.delete(key);
    setUnfolded(keys);
  };
  return html`<div class="sessions" role="region" aria-label="Sessions" tabindex="0">
    ${found.sessions.length === 0 && html`<p class="dim">No request here has a session: contents are not kept.</p>`}
    ${found.grouped < found.matching && html`<p class="dim">Of the newest ${count(found.grouped)} requests:</p>`}
    ${found.sessions.slice(0, SHOWN).map((session) => {
      const key = keyOf(session);
      const isOpen = unfolded.has(key);
      return html`<${Session}
        key=${key}
        ...${{ session, isOpen, reveal, opened, requests, onFilter, onOpen }}
        onToggle=${(open) => open !== isOpen && toggle(key, open)}
      />`;
    })}
  </div>`;
}

function keyOf({ key, source, id }) {
  return JSON.stringify([key, source, id]);
}

function Session({ session, isOpen, reveal, opened, requests, onToggle, onFilter, onOpen }) {
  const { id, key, source, words, client, agents } = session;
  const of = `session:${literal(id)}${key === "-" ? "" : ` key:${literal(key)}`}`;
  return html`<details class="session" open=${isOpen} onToggle=${(event) => onToggle(event.currentTarget.open)}>
    <summary>
      <h2>
        ${
          words
            ? html`<span class=${reveal ? "said-words" : "veiled"}>${visible(words)}</span>`
            : html`<span class="dim">no words are kept</span>`
        }
      </h2>
      <p class="dim">
        ${visible(client || SOURCES[source])}${key === "-" ? "" : html` of ${visible(key)}`}, ${figures(session.figures)}
      </p>
    </summary>
    ${
      isOpen &&
      html`<p class="session-id">
          <span class="dim">${SOURCES[source]}</span> <code>${visible(id)}</code>${" "}
          <button class="link" onClick=${() => onFilter(of)}>Show its requests in the list</button>
        </p>
        <${SessionRequests} ...${{ of, agents, reveal, opened, onOpen, onFilter }} rows=${requests.rows} />`
    }
  </details>`;
}

/** Returns a value of a filter that stands for itself: `*`, `?` and `[` stand for others. */
export function literal(value) {
  return value.replace(/[*?[]/g, "[$&]");
}

/** Says what the requests of a session, or of an agent, come to. */
export function figures({ requests, live, failed, turns, prompt_tokens, completion_tokens, began, latest }) {
  const parts = [
    counted(requests, "request"),
    live > 0 && `${count(live)} live`,
    failed > 0 && `${count(failed)} failed`,
    turns > 0 && counted(turns, "turn"),
    prompt_tokens + completion_tokens > 0 && `${count(prompt_tokens)}/${count(completion_tokens)} tokens`,
    latest > began ? `${clock(began)}, for ${duration((latest - began) * 1000)}` : clock(began),
  ];
  return parts.filter(Boolean).join(", ");
}
