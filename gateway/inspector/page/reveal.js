/** Whether this tab shows the words of requests. The browser keeps the choice as long as the tab is open. */

import { html } from "./html.js";
import { useState } from "./vendor/hooks.mjs";

const NAME = "dragoman.reveal";

/** Returns [reveal, toggle]. `settings` as the gateway shows them; `announce` gets what happened. */
export function useReveal(settings, announce) {
  const [reveal, setReveal] = useState(() => settings.reveal && stored());
  const toggle = () => {
    if (settings.redacted) return announce("There are no words to reveal: it is redacted.");
    if (!settings.reveal) return announce("Words are not shown here: inspector.reveal is off.");
    store(!reveal);
    setReveal(!reveal);
    announce(reveal ? "The words are hidden." : "The words are shown. The gateway's log says so.");
  };
  return [reveal, toggle];
}

/** The button above the list; an opened request has its own. `words` are those that the filter searches. */
export function RevealButton({ reveal, words, onReveal }) {
  const title = "Words are replaced by others of the same length until they are revealed (r); the log then says so";
  return html`${!reveal && words.length > 0 && html`<span class="dim">What was found is replaced:</span>`}
    <button aria-pressed=${reveal ? "true" : "false"} title=${title} onClick=${onReveal}>Reveal</button>`;
}

// A browser that keeps nothing for pages refuses with an error: the choice then lasts until the page is loaded again.
function stored() {
  try {
    return sessionStorage.getItem(NAME) === "yes";
  } catch {
    return false;
  }
}

function store(reveal) {
  try {
    if (reveal) sessionStorage.setItem(NAME, "yes");
    else sessionStorage.removeItem(NAME);
  } catch {
    return;
  }
}
