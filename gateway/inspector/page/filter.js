/** The filter above the list. The gateway reads it; a mistake in it is said below the box. */

import { html } from "./html.js";
import { useEffect, useRef } from "./vendor/hooks.mjs";

const WAIT_MS = 200;

/**
 * `onText` gets the text as it is typed, `onFilter` when somebody stops to type; `error` is what the gateway says about
 * the last one. `onEnter` is called for Enter: on to the list.
 */
export function Filter({ text, onText, onFilter, onEnter, error, input }) {
  const sent = useRef("");
  useEffect(() => {
    if (text.trim() === sent.current) return undefined;
    const timer = setTimeout(() => onFilter((sent.current = text.trim())), WAIT_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<div class="filter" role="search">
    <input
      ref=${input}
      type="search"
      aria-label="Filter"
      placeholder="Filter: status:5xx model:gpt-* or words"
      value=${text}
      spellcheck=${false}
      autocomplete="off"
      aria-invalid=${error ? "true" : null}
      aria-describedby=${error ? "filter-error" : null}
      onKeyDown=${(event) => event.key === "Enter" && onEnter()}
      onInput=${(event) => onText(event.target.value)}
    />
    ${error && html`<p id="filter-error" class="refused" role="alert">${error.message}</p>`}
  </div>`;
}
