/** Gets the admin key: from #key= of the address, which it erases there, or from a form. */

import { html } from "./html.js";
import { useState } from "./vendor/hooks.mjs";

/** Returns the key of the address ("" where there is none) and takes it out of the address and the history. */
export function takeKeyOfAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  const key = fields.get("key") ?? "";
  if (fields.has("key")) {
    fields.delete("key");
    const rest = fields.toString();
    history.replaceState(null, "", rest ? `#${rest}` : location.pathname + location.search);
  }
  return key;
}

/** The form that asks for the key. `refused`: the last one was wrong. `onKey` gets the key. */
export function AdminKeyForm({ refused, onKey }) {
  const [key, setKey] = useState("");
  const submit = (event) => {
    event.preventDefault();
    onKey(key.trim());
  };
  return html`<main class="alone">
    <form class="card" onSubmit=${submit}>
      <h1>Dragoman <span class="dim">inspector</span></h1>
      <p>
        This page has an admin key: the value of <code>DRAGOMAN_ADMIN_KEY</code> where the gateway was started, or what
        stands behind <code>#key=</code> in the address that <code>dragoman inspect</code> printed. A client's key does
        not open it.
      </p>
      <label for="admin-key">Admin key</label>
      <input
        id="admin-key"
        type="password"
        autocomplete="off"
        required
        value=${key}
        onInput=${(event) => setKey(event.target.value)}
        aria-describedby=${refused ? "key-refused" : null}
        ref=${(input) => input && !key && input.focus()}
      />
      ${refused && html`<p id="key-refused" class="refused" role="alert">The gateway refuses this key.</p>`}
      <button class="primary">Open</button>
      <p class="dim">The key stays in the memory of this tab, and is gone when the tab is closed or loaded again.</p>
    </form>
  </main>`;
}
