/** One request beside the list: what it was, what failed, how long each part took, and its views. */

import { Answer, FIRST_READS } from "./answer.js";
import { askJson } from "./api.js";
import { Banner } from "./banner.js";
import { CopyDialog } from "./copies.js";
import { Diff } from "./diff.js";
import { price } from "./figures.js";
import { useFocusOf } from "./focus.js";
import { Head } from "./head.js";
import { html } from "./html.js";
import { useCommands } from "./keys.js";
import { useLoaded, waiting } from "./loaded.js";
import { FIRST_MESSAGES, Messages } from "./messages.js";
import { ErrorBanner, NoticeList, useNoticeKeys } from "./notices.js";
import { taken } from "./requests.js";
import { SendDialog } from "./send.js";
import { Sent } from "./sent.js";
import { visible } from "./text.js";
import { Tries } from "./tries.js";
import { useLayoutEffect, useRef, useState } from "./vendor/hooks.mjs";
import { Waterfall } from "./waterfall.js";
import { WhatIf } from "./what_if.js";

const VIEWS = [
  { name: "messages", title: "Messages" },
  { name: "sent", title: "Sent" },
  { name: "answer", title: "Answer" },
  { name: "diff", title: "Since previous" },
  { name: "what-if", title: "What if" },
];
// What can be shown of a request that is not here as a whole.
const PARTIAL = VIEWS.filter(({ name }) => ["sent", "answer"].includes(name));

/**
 * `summary` may be null for a request that the list has not loaded; `view` stays from request to request. `entered`: it
 * was opened by a key, which brings the focus here. `reveal`: its words are shown; `marked`: it waits for the request
 * that it is compared with. `against` is the request that it is compared with, in place of the
 * previous one of its conversation. `recorded`: there is no gateway that could send it again. `onOpen` gets an id, and
 * that of the request to compare it with, `onEdit` the `draft` of the place to try with this request in it.
 */
export function Request(props) {
  const { id, against, summary, settings, recorded, entered, view, onView, onClose, onOpen, onFilter, announce } = props;
  const { reveal, onReveal, marked, onCompare, draft, onEdit } = props;
  const [dialog, setDialog] = useState(null);
  const closeDialog = () => setDialog(null);
  const body = useRef(null);
  useFocusOf(body);
  const copy = () => setDialog("copy");
  const send = recorded ? null : () => setDialog("send");
  const stamp = `${progress(summary)} ${reveal}`;
  const path = `requests/${encodeURIComponent(id)}`;
  const query = { reveal: reveal ? 1 : null };
  const form = reveal ? "revealed" : "redacted";
  const detail = useLoaded((signal) => askJson(path, { query, signal }), id, stamp, form);
  const kept = detail.value !== null && (detail.value.absent === null || detail.value.stages.length > 0);
  const partial = !kept && detail.value?.bodies.length > 0;
  const views = partial ? PARTIAL : VIEWS;
  const shown = views.some(({ name }) => name === view) ? view : views[0].name;
  const part = (name, to, wanted) =>
    useLoaded(
      (signal) => (wanted ? askJson(`${path}/${name}`, { query: { ...query, to }, signal }) : null),
      id,
      `${stamp} ${wanted}`,
      form,
    );
  const parts = {
    messages: part("messages", FIRST_MESSAGES, kept),
    answer: part("answer", FIRST_READS, kept || partial),
  };
  useLayoutEffect(() => {
    if (entered) document.querySelector(".request h2").focus();
  }, [entered]);
  const show = (name) => {
    if (!views.some((one) => one.name === name)) return announce("That view needs the whole request.");
    // What has the focus may go with the view that is left.
    if (document.activeElement.closest("[role=tabpanel]")) document.getElementById(`tab-${name}`).focus();
    onView(name);
    announce(`${VIEWS.find((one) => one.name === name).title} is shown.`);
  };
  const step = (by) => {
    const { name } = views[(views.findIndex((one) => one.name === shown) + by + views.length) % views.length];
    show(name);
    return name;
  };
  useCommands({
    previousView: () => step(-1),
    nextView: () => step(1),
    diff: () => show("diff"),
    whatIf: () => show("what-if"),
    copy,
    send: send ?? undefined,
  });
  useNoticeKeys();
  const known = detail.value?.summary ?? summary;
  const ms = summary?.live ? taken(summary) : known?.ms;
  return html`<section class="request" aria-label=${`Request ${id}`}>
    <${Head}
      id=${id}
      summary=${known}
      ms=${ms}
      route=${detail.value?.route}
      reveal=${reveal}
      mayReveal=${settings.reveal && (kept || partial || detail.value === null)}
      redacted=${settings.redacted}
      closed=${!settings.reveal && !settings.redacted}
      onCopy=${copy}
      onSend=${send}
      unsendable=${detail.value !== null && !kept ? unsendable(partial) : ""}
      onReveal=${onReveal}
      marked=${marked}
      onCompare=${onCompare}
      onClose=${onClose}
      onFilter=${onFilter}
    />
    <div class="request-body" tabindex="0" role="group" aria-label="Contents of the request" ref=${body}>
      ${
        detail.value === null
          ? html`<p class="empty">${waiting(detail)}</p>`
          : html`<${Banner} detail=${detail.value} />
              <${ErrorBanner} error=${detail.value.error} />
              ${!known.live && html`<${Checks} checks=${detail.value.checks} />`}
              <${Lost} lost=${detail.value.lost} reveal=${reveal} />
              <${CacheLoss} loss=${detail.value.summary.cache} />
              ${kept && detail.value.absent && html`<p class="banner warn absent">${detail.value.absent}</p>`}
              <${Tries} tries=${detail.value.tries} />
              <${Waterfall}
                marks=${detail.value.marks}
                reads=${parts.answer.value?.reads}
                live=${known.live}
                cut=${detail.value.error?.cut ?? null}
                ms=${ms}
              />
              ${
                !kept &&
                html`<p class="banner warn absent">${detail.value.absent}</p>
                  <${NoticeList} notices=${detail.value.notices} />`
              }
              ${
                (kept || partial) &&
                html`<${Views} ...${{ views, view: shown, compared: against !== null }} onView=${show} onStep=${step} />
                      <div role="tabpanel" id="view" aria-labelledby=${`tab-${shown}`} class="view">
                        ${viewOf(shown, { id, path, query, stamp, against, detail: detail.value, ...parts, settings, onOpen })}
                      </div>`
              }`
      }
    </div>
    ${
      dialog === "copy" && html`<${CopyDialog} id=${id} absent=${!kept} onClose=${closeDialog} announce=${announce} />`
    }
    ${
      dialog === "send" &&
      known &&
      html`<${SendDialog}
        id=${id}
        summary=${known}
        settings=${settings}
        absent=${kept ? "" : unsendable(partial)}
        draft=${draft}
        onSent=${(sent) => onOpen(sent, id)}
        onEdit=${onEdit}
        onClose=${closeDialog}
      />`
    }
  </section>`;
}

// Why a request cannot be sent again of which not everything is here.
function unsendable(partial) {
  return partial
    ? "This request is not here as a whole, so that it cannot be sent again."
    : "The contents of this request are not here, so that it cannot be sent again.";
}

// A request that goes on is loaded again once a second, and once at its end.
function progress(summary) {
  return summary?.live ? `live ${Math.floor(taken(summary) / 1000)}` : "ended";
}

function viewOf(view, { id, path, query, stamp, against, detail, messages, answer, settings, onOpen }) {
  const key = `${id} ${query.reveal}`;
  switch (view) {
    case "messages":
      return html`<${Messages} key=${key} loaded=${messages} notices=${detail.notices} path=${path} query=${query} />`;
    case "sent":
      return html`<${Sent} ...${{ path, query, stamp }} bodies=${detail.bodies} prepared=${detail.marks.prepared !== null} />`;
    case "answer":
      return html`<${Answer} key=${key} loaded=${answer} live=${detail.summary.live} path=${path} query=${query} />`;
    case "diff":
      return html`<${Diff} ...${{ path, query, stamp, onOpen }} previous=${against ?? detail.previous} />`;
    default:
      return html`<${WhatIf} key=${id} ...${{ id, settings, query }} route=${detail.route} />`;
  }
}

function Views({ views, view, compared, onView, onStep }) {
  const onArrow = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by !== undefined) document.getElementById(`tab-${onStep(by)}`).focus();
  };
  return html`<div class="views" role="tablist" aria-label="Views of the request" onKeyDown=${onArrow}>
    ${views.map(
      ({ name, title }) =>
        html`<button
          role="tab"
          id=${`tab-${name}`}
          aria-selected=${name === view ? "true" : "false"}
          aria-controls="view"
          tabindex=${name === view ? 0 : -1}
          onClick=${() => onView(name)}
        >
          ${name === "diff" && compared ? "Compared" : title}
        </button>`,
    )}
  </div>`;
}

function Checks({ checks }) {
  const wrong = checks.filter((check) => !check.same);
  if (wrong.length === 0) return null;
  return html`<section class="banner warn" aria-label="Defect of the gateway">
    <strong>What is shown here differs from what was sent then: a defect of the gateway.</strong>
    ${wrong.map((check) => html`<p>${check.name}: ${visible(check.differences.join("; "))}</p>`)}
  </section>`;
}

// What the provider's prompt cache could not serve, and who is the cause.
function CacheLoss({ loss }) {
  if (loss === null) return null;
  return html`<section class="verdict broken" aria-label="Prompt cache">
    <strong>Prompt cache lost</strong> ${visible(loss.sentence)}
    ${loss.cost && html`${" "}<span class="dim">Cost: ${price(loss.cost)}.</span>`}
  </section>`;
}

// What is shown is made from redacted words. Where the gateway acts on the words themselves, it does not do as it did.
function Lost({ lost, reveal }) {
  if (lost.length === 0) return null;
  return html`<section class="banner warn" aria-label="Changed by redaction">
    <strong>Redacted, the request behaves otherwise than it did${!reveal && "; Reveal (r) shows it as it was"}.</strong>
    ${lost.map((one) => html`<p>${visible(one)}</p>`)}
  </section>`;
}
