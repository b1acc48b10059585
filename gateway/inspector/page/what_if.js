/** What the same request would become with another profile or other limits. Nothing is sent. */

import { askJson } from "./api.js";
import { html } from "./html.js";
import { useLoaded } from "./loaded.js";
import { StageTable } from "./messages.js";
import { NoticeList, unplaced } from "./notices.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

const LIMITS = [
  { name: "max_tool_results", title: "Most tool results" },
  { name: "max_history_messages", title: "Most messages" },
];

/** `settings` names the profiles, `route` the one that was used; `query` says whether the words are revealed. */
export function WhatIf({ id, settings, route, query }) {
  const [asked, setAsked] = useState({ body: null, times: 0 });
  const load = (signal) =>
    asked.body === null ? null : askJson("explain", { method: "POST", body: asked.body, query, signal });
  const answer = useLoaded(load, id, `${asked.times} ${query.reveal}`);
  const submit = (event) => {
    event.preventDefault();
    setAsked({ body: { id, ...choices(new FormData(event.target)) }, times: asked.times + 1 });
  };
  return html`<form class="choices" onSubmit=${submit}>
      <label
        >Profile
        <select name="profile">
          <option value="">${route?.profile ? `as it is: ${route.profile}` : "as it is"}</option>
          ${settings.profiles.map((name) => html`<option value=${name}>${name}</option>`)}
        </select></label
      >
      ${LIMITS.map(
        ({ name, title }) =>
          html`<label>${title} <input name=${name} type="number" min="0" step="1" placeholder="as it is" /></label>`,
      )}
      <button class="primary">Show</button>
      <span class="dim">Nothing is sent to a backend.</span>
    </form>
    <div aria-live="polite">
      ${asked.body && !answer.error && !answer.value && html`<p class="empty">Loading ...</p>`}
      ${answer.error && html`<p class="banner error">${answer.error.message}</p>`}
      ${answer.value && html`<${Outcome} outcome=${answer.value} />`}
    </div>`;
}

// Only what was chosen is sent: numbers as numbers.
function choices(form) {
  const chosen = {};
  if (form.get("profile")) chosen.profile = form.get("profile");
  for (const { name } of LIMITS) if (form.get(name)) chosen[name] = Number(form.get(name));
  return chosen;
}

function Outcome({ outcome }) {
  return html`${outcome.refusal && html`<${Refusal} text=${outcome.refusal} />`}
    <${NoticeList} notices=${unplaced(outcome.notices, outcome.rows)} />
    <${StageTable} rows=${outcome.rows} notices=${outcome.notices} />`;
}

function Refusal({ text }) {
  return html`<section class="banner error" role="group" aria-label="Refusal">
    <strong>It would be refused.</strong> ${visible(text)}
  </section>`;
}
