/** The inspector: the list of requests on the left, the opened one on the right. */

import { ofAddress } from "./address.js";
import { Bar, Warnings } from "./bar.js";
import { Comparing, useComparison } from "./compare.js";
import { DoctorDialog } from "./doctor.js";
import { Empty } from "./empty.js";
import { counted } from "./figures.js";
import { Filter } from "./filter.js";
import { useFocusOf } from "./focus.js";
import { ForgetDialog } from "./forget.js";
import { setFound } from "./found.js";
import { html } from "./html.js";
import { KeysDialog, onKey, useCommands } from "./keys.js";
import { ListFoot, RequestList } from "./list.js";
import { useOpened } from "./opened.js";
import { Request } from "./request.js";
import { Requests } from "./requests.js";
import { RevealButton, useReveal } from "./reveal.js";
import { Sessions } from "./sessions.js";
import { SettingsDialog } from "./settings.js";
import { useStream, useTicks } from "./stream.js";
import { Totals, useTotals } from "./totals.js";
import { Tryout, TryoutPane } from "./tryout.js";
import { useEffect, useMemo, useRef, useState } from "./vendor/hooks.mjs";

/**
 * `settings` as the gateway shows them. `onBack` is called when it answers again, and `onRefused` gets the ApiError of
 * one that lets nobody look any more.
 */
export function Inspector({ settings, onBack, onRefused }) {
  const [, redraw] = useState(0);
  const [state, setState] = useState("connecting");
  const [follow, setFollow] = useState(true);
  const [view, setView] = useState("messages");
  const [dialog, setDialog] = useState(null);
  const closeDialog = () => setDialog(null);
  const [spoken, announce] = useState("");
  const [text, setText] = useState("");
  const [grouped, setGrouped] = useState(false);
  const tryout = useMemo(() => new Tryout(settings.models), []);
  const [reveal, toggleReveal] = useReveal(settings, announce);
  const filter = useRef(null);
  const list = useRef(null);
  useFocusOf(list);
  const requests = useMemo(
    () => new Requests(settings.keep * settings.workers.total, () => redraw((count) => count + 1)),
    [],
  );
  useStream(requests, reveal, setState, onBack, onRefused);
  useTicks(requests);
  const totals = useTotals(requests);
  setFound(requests.words);
  const { opened, trying, at, setAt, entered, open, tryOut, close, moveTo } = useOpened(requests, list);
  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const edit = (draft) => {
    tryout.edit(draft);
    tryOut();
  };
  const onPair = (later, earlier) => {
    setView("diff");
    open(later, true, earlier);
  };
  const { marked, compare, cancel } = useComparison(requests.byId, {
    onPair,
    onFirst: () => isNarrow() && close(),
    announce,
  });
  const choose = (id, byKey) => (marked === null ? open(id, byKey) : compare(id));
  const addTerm = (term) => setText([...text.split(/\s+/).filter((one) => one && one !== term), term].join(" "));
  const position = requests.rows.findIndex((row) => row.id === at.current);
  const newest = () => {
    setFollow(true);
    moveTo(0);
  };
  const showList = (terms) => {
    setGrouped(false);
    setText(terms);
  };
  const clear = () => {
    setText("");
    filter.current.focus();
  };
  const search = (text) => {
    setFollow(true);
    requests.load(text).then(() => requests.error ?? announce(`${counted(requests.matching, "request")} found.`));
  };
  useCommands({
    next: grouped ? undefined : () => moveTo(position + 1),
    previous: grouped ? undefined : () => moveTo(position - 1),
    first: grouped ? undefined : () => moveTo(0),
    last: grouped ? undefined : () => moveTo(requests.rows.length - 1),
    open: grouped ? undefined : () => at.current !== null && choose(at.current, true),
    back: () => (marked !== null ? cancel() : (opened !== null || trying) && close()),
    tryout: state === "recorded" ? undefined : tryOut,
    compare: () => (opened ?? at.current) !== null && compare(opened ?? at.current),
    sessions: () => setGrouped(!grouped),
    reveal: toggleReveal,
    filter: () => filter.current.focus(),
    follow: newest,
    pause: () => requests.pause(!requests.paused),
    doctor: state === "recorded" ? undefined : () => setDialog("doctor"),
    settings: state === "recorded" ? undefined : () => setDialog("settings"),
    help: () => setDialog("keys"),
  });
  useEffect(() => {
    document.title = opened === null ? "Dragoman inspector" : `${opened} - Dragoman inspector`;
  }, [opened]);
  const failed = requests.error?.status === 400 ? requests.error : null;
  return html`
    <${Bar} ...${{ settings, state, requests }} onDialog=${setDialog} onTry=${tryOut}>
      <${Filter} input=${filter} text=${text} onText=${setText} onFilter=${search} onEnter=${newest} error=${failed} />
    </${Bar}>
    <${Warnings} workers=${settings.workers} error=${failed ? null : requests.error} />
    <main class=${opened === null && !trying ? "" : "has-request"}>
      <${Totals} totals=${requests.total > 0 ? totals : null} onFilter=${addTerm}>
        ${
          opened === null &&
          settings.reveal &&
          html`<${RevealButton} ...${{ reveal, words: requests.words }} onReveal=${toggleReveal} />`
        }
      </${Totals}>
      <section class="list" aria-label="Requests" tabindex="-1" ref=${list}>
        ${marked !== null && html`<${Comparing} id=${marked} onCancel=${cancel} />`}
        ${
          grouped
            ? html`<${Sessions} ...${{ requests, reveal, opened }} onFilter=${showList} onOpen=${choose} />`
            : requests.loaded && requests.rows.length === 0
            ? requests.error === null &&
              html`<${Empty}
                filter=${requests.filter}
                settings=${settings}
                onClear=${clear}
                announce=${announce}
              />`
            : html`<${RequestList}
                requests=${requests}
                current=${at.current}
                moves=${at.moves}
                opened=${opened}
                marked=${marked}
                follow=${follow}
                veiled=${!reveal && !settings.redacted}
                priced=${totals !== null && totals.costs.length > 0}
                onCurrent=${(id) => setAt({ ...at, current: id })}
                onOpen=${choose}
                onFollow=${setFollow}
              />`
        }
        <${ListFoot}
          requests=${requests}
          follow=${follow}
          filter=${text}
          onFilter=${setText}
          grouped=${grouped}
          onGroup=${() => setGrouped(!grouped)}
          onNewest=${newest}
          onForget=${state === "recorded" ? null : () => setDialog("forget")}
        />
      </section>
      ${
        opened !== null &&
        html`<${Request}
          key=${opened}
          id=${opened}
          against=${ofAddress("against")}
          summary=${requests.byId.get(opened) ?? null}
          settings=${settings}
          recorded=${state === "recorded"}
          entered=${entered === opened}
          reveal=${reveal}
          onReveal=${toggleReveal}
          marked=${marked === opened}
          onCompare=${() => compare(opened)}
          view=${view}
          onView=${setView}
          onClose=${close}
          onOpen=${(id, against) => open(id, true, against)}
          draft=${tryout.draft}
          onEdit=${edit}
          onFilter=${setText}
          announce=${announce}
        />`
      }
      ${
        trying &&
        html`<${TryoutPane} ...${{ tryout, settings, announce }} onOpen=${(id, like) => open(id, true, like)} onClose=${close} />`
      }
    </main>
    <p class="unseen" role="status" aria-live="polite">${spoken}</p>
    ${dialog === "doctor" && html`<${DoctorDialog} allowed=${settings.send} onClose=${closeDialog} />`}
    ${dialog === "settings" && html`<${SettingsDialog} onClose=${closeDialog} />`}
    ${dialog === "keys" && html`<${KeysDialog} version=${settings.version} onClose=${closeDialog} />`}
    ${dialog === "forget" && html`<${ForgetDialog} ...${{ requests, announce }} onClose=${closeDialog} />`}`;
}

// Where the list and an opened request have no room side by side; the style sheet has the same width.
function isNarrow() {
  return matchMedia("(max-width: 860px)").matches;
}
