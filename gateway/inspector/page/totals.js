/** The sums of the requests that pass the filter, and how each backend has answered lately. */

import { askJson } from "./api.js";
import { clock, count, counted, price } from "./figures.js";
import { html } from "./html.js";
import { visible } from "./text.js";
import { useEffect, useState } from "./vendor/hooks.mjs";

// The gateway adds up ten thousand requests for each answer: it is asked no more often.
const WAIT_MS = 3000;

/**
 * Returns the totals of the gateway, or null while there are none; again when the `requests` of the list change. They
 * are those of the filter that the list has passed: one that the gateway refuses is not asked twice.
 */
export function useTotals(requests) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    let summed = null;
    const abort = new AbortController();
    const look = () => {
      if (requests.listed === null || document.hidden || summed === requests.rows) return;
      summed = requests.rows;
      // The bar says when the gateway does not answer; the last sums stay until it does.
      askJson("totals", { query: { filter: requests.listed }, signal: abort.signal }).then(setFound, () => {});
    };
    look();
    const timer = setInterval(look, WAIT_MS);
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [requests.listed]);
  return found;
}

/**
 * `totals` as in the contract. `onFilter` gets a term to add to the filter; `children` are the controls beside the
 * sums.
 */
export function Totals({ totals, onFilter, children }) {
  return html`<section class="totals" aria-label="Totals">
    ${totals !== null && html`<${Sums} totals=${totals} onFilter=${onFilter} />`}
    ${
      totals !== null &&
      totals.backends.length > 0 &&
      html`<${Backends} backends=${totals.backends} onFilter=${onFilter} />`
    }
    <div class="controls">${children}</div>
  </section>`;
}

function Sums({ totals, onFilter }) {
  const { requests, live, failed, prompt_tokens: prompt, completion_tokens: completion, costs, unpriced } = totals;
  const since = totals.began > 0 ? `since ${clock(totals.began)}` : null;
  const incomplete = costs.length > 0 && unpriced > 0 ? `${counted(unpriced, "request")} without a price` : null;
  return html`<p class="sums">
    <strong title=${since}>${counted(requests, "request")}</strong>
    ${live > 0 && html`<span>${count(live)} live</span>`}
    ${
      failed > 0 &&
      html`<button class="link failed" title="Show them alone" onClick=${() => onFilter("failed:yes")}>
        ${count(failed)} failed
      </button>`
    }
    ${
      prompt + completion > 0 &&
      html`<span title="Tokens in/out">
        ${totals.estimated && "~"}${short(prompt)} in, ${short(completion)} out<span class="unseen"> tokens</span>
      </span>`
    }
    ${costs.map((cost) => html`<span title=${incomplete}>${price(cost)}${incomplete && "+"}</span>`)}
  </p>`;
}

// 1204 -> "1.2k", 3400000 -> "3.4M".
function short(number) {
  return new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }).format(number).toLowerCase();
}

// Of many that answer well, there is nothing to see but that.
const MANY = 3;

function Backends({ backends, onFilter }) {
  const well = backends.filter((one) => stateOf(one) === "well");
  const shown = well.length > MANY ? backends.filter((one) => !well.includes(one)) : backends;
  const names = well.map((one) => one.name).join(", ");
  return html`<ul class="backends" aria-label="Backends">
    ${shown.map((one) => html`<${Backend} key=${one.name} backend=${one} onFilter=${onFilter} />`)}
    ${well.length > MANY && html`<li class="backend-state well" title=${names}>${counted(well.length, "backend")} ok</li>`}
  </ul>`;
}

function stateOf({ lately, failed_lately: failed }) {
  if (lately === 0) return "unknown";
  return failed === 0 ? "well" : failed === lately ? "down" : "ill";
}

function Backend({ backend, onFilter }) {
  const { name, requests, failed, lately, failed_lately: now, outcome } = backend;
  const state = stateOf(backend);
  const said = {
    unknown: "no answer has ended",
    well: "ok",
    ill: `${now} of ${lately} failed: ${outcome}`,
    down: lately === 1 ? outcome : `all ${lately} failed: ${outcome}`,
  }[state];
  const title = `${counted(requests, "request")}, ${count(failed)} failed because of it. Show them alone`;
  return html`<li>
    <button class="link backend-state ${state}" title=${title} onClick=${() => onFilter(`backend:${name}`)}>
      <span class="name">${visible(name)}</span> ${said}
    </button>
  </li>`;
}
