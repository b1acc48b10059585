/** The requests of one session: a timeline of its agents, and the tree of its requests, calls and agents. */

import { askJson } from "./api.js";
import { clock, counted, duration } from "./figures.js";
import { focusAround } from "./focus.js";
import { html } from "./html.js";
import { Asked, isFailed, toolNames } from "./row.js";
import { figures, literal } from "./sessions.js";
import { visible } from "./text.js";
import { useEffect, useState } from "./vendor/hooks.mjs";

const MOST = 1000;
// So many requests of a tree are drawn at once.
const AT_ONCE = 100;

/**
 * `of` is the filter of the session, `agents` its tree as in the contract; `rows` are those of the list, with which its
 * requests are asked for again. `opened` is the id of the request beside them.
 */
export function SessionRequests({ of, agents, reveal, opened, rows, onOpen, onFilter }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [shown, setShown] = useState(AT_ONCE);
  useEffect(() => {
    const asked = new AbortController();
    const query = { filter: of, limit: MOST, reveal: reveal ? 1 : null };
    const load = () =>
      askJson("requests", { query, signal: asked.signal })
        .then((answer) => setFound(answer) ?? setError(null))
        .catch((failure) => asked.signal.aborted || setError(failure));
    const timer = setTimeout(load, found === null ? 0 : 1000);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [of, rows, reveal]);
  if (error !== null) return html`<p class="refused" role="alert">${error.message}</p>`;
  if (found === null) return html`<p class="dim">Loading ...</p>`;
  const requests = found.requests.toReversed();
  const more = (event) => {
    const keepFocus = focusAround(event.currentTarget);
    setShown(shown + AT_ONCE);
    keepFocus();
  };
  const tree = { calls: callsOf(requests), requests: requests.slice(-shown), reveal, opened, of, onOpen, onFilter };
  const hidden = requests.length - tree.requests.length;
  return html`<${Timeline} requests=${requests} agents=${agents} opened=${opened} onOpen=${onOpen} />
    ${found.matching > found.requests.length && html`<p class="dim">The newest ${counted(found.requests.length, "request")}:</p>`}
    ${
      hidden > 0 &&
      html`<button class="more" onClick=${more}>Show earlier ones: ${counted(hidden, "request")} before these</button>`
    }
    <ul class="agents">
      ${agents.map((agent) => html`<${Agent} key=${agent.id} agent=${agent} tree=${tree} />`)}
    </ul>`;
}

/** Returns by the id of each request the names of the calls that its answer made: the next one brings their results. */
function callsOf(requests) {
  const latest = new Map();
  const calls = new Map();
  for (const one of requests) {
    const chain = `${agentOf(one)} ${one.conversation}`;
    const before = latest.get(chain);
    if (before !== undefined && one.asked.results.length > 0 && !calls.has(before)) {
      calls.set(before, toolNames(one.asked.results));
    }
    latest.set(chain, one.id);
  }
  return calls;
}

function agentOf(summary) {
  return summary.session?.agent ?? "";
}

function Agent({ agent, tree }) {
  const { of, requests, onFilter } = tree;
  const own = requests.filter((one) => agentOf(one) === agent.id);
  const name = agent.id === "" ? "main agent" : visible(agent.id);
  const show = () => onFilter(`${of} ${agent.id === "" ? "-agent:?*" : `agent:${literal(agent.id)}`}`);
  const below = placed(agent.agents, own);
  return html`<li class="agent">
    <p class="agent-name">
      ${
        agent.figures === null
          ? name
          : html`<button class="link" title="Show the requests of this agent in the list" onClick=${show}>${name}</button>`
      }
      <span class="dim"> ${agent.figures === null ? "no request of it is here" : figures(agent.figures)}</span>
    </p>
    <ul>
      ${(below.get("") ?? []).map((one) => html`<${Agent} key=${one.id} agent=${one} tree=${tree} />`)}
      ${own.map(
        (one, at) =>
          html`<${Request} key=${one.id} summary=${one} before=${own[at - 1]} below=${below.get(one.id) ?? []} tree=${tree} />`,
      )}
    </ul>
  </li>`;
}

// Agents stand below the request of the agent above them that was the latest when they began; "": none is here.
function placed(agents, own) {
  const places = new Map();
  for (const agent of agents) {
    const began = beginning(agent);
    const id = own.findLast((one) => one.began <= began)?.id ?? "";
    places.set(id, [...(places.get(id) ?? []), agent]);
  }
  return places;
}

function beginning(agent) {
  return Math.min(agent.figures?.began ?? Number.POSITIVE_INFINITY, ...agent.agents.map(beginning));
}

// The words of a message stand at its first request; those that follow bring results of calls.
function Request({ summary, before, below, tree }) {
  const { calls, reveal, opened, onOpen } = tree;
  const isNew = before === undefined || before.asked.words !== summary.asked.words || summary.asked.results.length === 0;
  const failed = !summary.live && isFailed(summary);
  const said = isNew ? { ...summary, asked: { ...summary.asked, results: [] } } : summary;
  return html`<li>
    <button
      class="session-request ${failed ? "is-failed" : ""} ${isNew ? "is-new" : ""}"
      aria-current=${summary.id === opened ? "true" : null}
      onClick=${() => onOpen(summary.id, true)}
    >
      <span class="time">${clock(summary.began)}</span>
      ${
        isNew
          ? html`<span class="asks"><${Asked} summary=${said} veiled=${!reveal} /></span>`
          : html`<span class="asks dim">with the results</span>`
      }
      <span class=${failed ? "failed" : "dim"}>${summary.outcome}</span>
      <span class="dim">${summary.live ? "" : duration(summary.ms)}</span>
    </button>
    ${calls.has(summary.id) && html`<p class="calls"><span class="dim">calls</span> ${visible(calls.get(summary.id))}</p>`}
    ${
      below.length > 0 &&
      html`<ul class="agents">
        ${below.map((agent) => html`<${Agent} key=${agent.id} agent=${agent} tree=${tree} />`)}
      </ul>`
    }
  </li>`;
}

// A lane for each agent, with a mark for each of its requests. The tree below has the same as text and buttons.
function Timeline({ requests, agents, opened, onOpen }) {
  const ended = requests.map((one) => one.began + one.ms / 1000);
  const start = requests[0]?.began ?? 0;
  const span = Math.max(0.001, Math.max(...ended) - start);
  const lanes = lanesOf(agents).filter((id) => requests.some((one) => agentOf(one) === id));
  const failed = requests.filter(isFailed).length;
  const label = `Timeline: ${counted(requests.length, "request")} of ${counted(lanes.length, "agent")} in ${duration(span * 1000)}, ${failed} failed`;
  return html`<div class="timeline" role="img" aria-label=${label}>
    ${lanes.map(
      (id) =>
        html`<div class="lane" key=${id}>
          ${requests
            .filter((one) => agentOf(one) === id)
            .map((one) => {
              const place = {
                left: `${(100 * (one.began - start)) / span}%`,
                width: `${(100 * one.ms) / 1000 / span}%`,
              };
              const state = one.live ? "live" : isFailed(one) ? "failed" : "fine";
              const name = one.id === opened ? "opened" : "";
              const title = `${clock(one.began)} ${one.outcome}, ${duration(one.ms)}`;
              return html`<span key=${one.id} class="${state} ${name}" style=${place} title=${title} onClick=${() => onOpen(one.id)}></span>`;
            })}
        </div>`,
    )}
    <p class="scale dim"><span>${clock(start)}</span> <span>${duration(span * 1000)} later</span></p>
  </div>`;
}

function lanesOf(agents) {
  return agents.flatMap((agent) => [agent.id, ...lanesOf(agent.agents)]);
}
