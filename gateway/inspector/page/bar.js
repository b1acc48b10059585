/** The bar above the list, and the line below it that says what keeps the list from being complete. */

import { html } from "./html.js";
import { useState } from "./vendor/hooks.mjs";

const THEMES = { system: "auto", light: "light", dark: "dark" };
const STREAM = {
  connecting: "connecting",
  live: "live",
  hidden: "paused while hidden",
  lost: "connection lost, trying again",
  recorded: "a recording",
};

/**
 * `state` is that of the stream; `children` is the filter; `onDialog` gets the name of a dialog, and `onTry` opens the
 * place to try. A recording has no gateway, and so nothing about one.
 */
export function Bar({ settings, state, requests, onDialog, onTry, children }) {
  const [theme, setTheme] = useState("system");
  const change = () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(theme) + 1) % names.length];
    document.documentElement.dataset.theme = next;
    setTheme(next);
  };
  const [more, setMore] = useState(false);
  const paused = requests.paused;
  return html`<header class="bar">
    <h1>Dragoman <span class="dim">inspector</span></h1>
    <span class="stream ${paused ? "paused" : state}">${paused ? "paused" : STREAM[state]}</span>
    ${settings.workers.total > 1 && html`<span class="dim">${settings.workers.total} workers</span>`} ${children}
    ${state !== "recorded" && html`<${Pause} requests=${requests} />`}
    <button class="more-tools" aria-expanded=${more ? "true" : "false"} onClick=${() => setMore(!more)}>More</button>
    <div class="tools ${more ? "is-open" : ""}">
      ${
        state !== "recorded" &&
        html`<button onClick=${onTry}>Try</button>
          <button onClick=${() => onDialog("settings")}>Settings</button>
          <button onClick=${() => onDialog("doctor")}>Doctor</button>`
      }
      <button onClick=${change} title="Colours: as the system has them, light, dark">Theme: ${THEMES[theme]}</button>
      <button onClick=${() => onDialog("keys")} aria-label="? Keys and filter">?</button>
    </div>
  </header>`;
}

function Pause({ requests }) {
  const { paused } = requests;
  return html`<button aria-pressed=${paused ? "true" : "false"} onClick=${() => requests.pause(!paused)}>
    Pause
  </button>`;
}

/** What keeps the list from being complete; nothing where nothing does. */
export function Warnings({ workers, error }) {
  const hidden = workers.total - workers.seen;
  if (hidden === 0 && error === null) return null;
  return html`<section class="banner warn" aria-label="Warnings">
    ${error && html`<p role="alert">${error.message}</p>`}
    ${hidden > 0 && html`<p>${workers.seen} of ${workers.total} workers: requests to the others are missing.</p>`}
  </section>`;
}
