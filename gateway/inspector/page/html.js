/** Binds htm's templates to Preact: html`<p>${text}</p>` makes nodes. A text becomes a text node, never HTML. */

import { h } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
