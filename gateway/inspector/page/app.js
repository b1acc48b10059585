/** Begins the page: asks the gateway what it shows, with the admin key where it has one. */

import { AdminKeyForm, takeKeyOfAddress } from "./admin_key.js";
import { askJson, useAdminKey } from "./api.js";
import { html } from "./html.js";
import { Inspector } from "./inspector.js";
import { useEffect, useState } from "./vendor/hooks.mjs";
import { render } from "./vendor/preact.mjs";

const WORKERS_MS = 5000;

function Page() {
  const [settings, setSettings] = useState(null);
  const [refusal, setRefusal] = useState(null);
  const [tries, setTries] = useState(0);
  const load = () => askJson("settings").then(setSettings, setRefusal);
  const reload = () => askJson("settings").then(setSettings, () => {});
  const enter = (key) => {
    useAdminKey(key);
    if (key) setTries((count) => count + 1);
    load();
  };
  // It has another key by now, or shows nothing any more.
  const refuse = (error) => {
    setSettings(null);
    setRefusal(error);
  };
  useEffect(() => {
    const onAddress = () => {
      const key = takeKeyOfAddress();
      if (key) enter(key);
    };
    enter(takeKeyOfAddress());
    addEventListener("hashchange", onAddress);
    return () => removeEventListener("hashchange", onAddress);
  }, []);
  // A worker that is starting is seen a little later.
  useEffect(() => {
    if (settings === null || settings.workers.seen === settings.workers.total) return undefined;
    const timer = setTimeout(reload, WORKERS_MS);
    return () => clearTimeout(timer);
  }, [settings]);
  if (settings !== null) return html`<${Inspector} settings=${settings} onBack=${reload} onRefused=${refuse} />`;
  if (refusal === null) return null;
  if (refusal.status === 401) return html`<${AdminKeyForm} refused=${tries > 0} onKey=${enter} />`;
  return html`<main class="alone">
    <div class="card">
      <h1>Dragoman <span class="dim">inspector</span></h1>
      <p role="alert">${refusal.message}</p>
      <button class="primary" onClick=${load}>Try again</button>
    </div>
  </main>`;
}

document.body.replaceChildren();
render(html`<${Page} />`, document.body);
