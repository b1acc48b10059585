/** The tries of a request with other models, which failed before the one that answered. */

import { duration } from "./figures.js";
import { html } from "./html.js";
import { visible } from "./text.js";

export function Tries({ tries }) {
  if (tries.length === 0) return null;
  return html`<ol class="banner warn tries" aria-label="Failed tries">
    ${tries.map(
      ({ at, model, backend, code, status, cause }) =>
        html`<li title=${cause}>
          ${visible(model)} at ${visible(backend)} failed after ${duration(at)}: ${visible(code || "-")}${status ? ` (${status})` : ""}
        </li>`,
    )}
  </ol>`;
}
