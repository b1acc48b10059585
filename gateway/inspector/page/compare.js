/** Chooses two requests, one after the other, that are compared. */

import { html } from "./html.js";
import { visible } from "./text.js";
import { useState } from "./vendor/hooks.mjs";

/**
 * Returns {marked, compare, cancel}: the id of the first one or null, what is called with the id of each, and what
 * forgets the first one. `byId` are the requests of the list. `onPair` gets the later and the earlier one, `onFirst` is
 * called when a second one is to be chosen.
 */
export function useComparison(byId, { onPair, onFirst, announce }) {
  const [marked, setMarked] = useState(null);
  const compare = (id) => {
    setMarked(marked === null ? id : null);
    if (marked === null) {
      announce("Choose another request to compare it with.");
      onFirst();
    } else if (marked !== id) {
      const isLater = (byId.get(marked)?.seq ?? 0) > (byId.get(id)?.seq ?? 0);
      if (isLater) onPair(marked, id);
      else onPair(id, marked);
    }
  };
  return { marked, compare, cancel: () => setMarked(null) };
}

/** Says above the list that a request waits for the one that it is compared with. */
export function Comparing({ id, onCancel }) {
  return html`<p class="comparing">
    <span>Compare <code>${visible(id)}</code> with: choose a request.</span>
    <button onClick=${onCancel}>Cancel</button>
  </p>`;
}
