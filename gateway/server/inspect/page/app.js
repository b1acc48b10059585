/** The page: the list of requests on the left, the opened one on the right. */

import { AdminKeyForm, takeKeyOfAddress } from "./admin_key.js";
import { askJson, useAdminKey } from "./api.js";
import { Bar, Warnings } from "./bar.js";
import { DoctorDialog } from "./doctor.js";
import { Empty } from "./empty.js";
import { counted } from "./figures.js";
import { Filter } from "./filter.js";
import { ForgetDialog } from "./forget.js";
import { html } from "./html.js";
import { KeysDialog, onKey, useCommands } from "./keys.js";
import { ListFoot, RequestList } from "./list.js";
import { Request } from "./request.js";
import { Requests } from "./requests.js";
import { SettingsDialog } from "./settings.js";
import { ChangeStream } from "./stream.js";
import { useEffect, useMemo, useRef, useState } from "./vendor/hooks.mjs";
import { render } from "./vendor/preact.mjs";

function Page() {
  const [settings, setSettings] = useState(null);
  const [refusal, setRefusal] = useState(null);
  const [tries, setTries] = useState(0);
  const enter = (key) => {
    useAdminKey(key);
    if (key) setTries((count) => count + 1);
    askJson("settings").then(setSettings, setRefusal);
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
  if (settings !== null) return html`<${Inspector} settings=${settings} />`;
  if (refusal === null) return null;
  if (refusal.status === 401) return html`<${AdminKeyForm} refused=${tries > 0} onKey=${enter} />`;
  return html`<main class="alone">
    <div class="card">
      <h1>Dragoman <span class="dim">inspector</span></h1>
      <p role="alert">${refusal.message}</p>
    </div>
  </main>`;
}

function Inspector({ settings }) {
  const [, redraw] = useState(0);
  const [state, setState] = useState("connecting");
  const [opened, setOpened] = useState(() => ofAddress("request"));
  const [at, setAt] = useState({ current: opened, moves: 0 });
  const [follow, setFollow] = useState(true);
  const [entered, setEntered] = useState(null);
  const [view, setView] = useState("messages");
  const [dialog, setDialog] = useState(null);
  const closeDialog = () => setDialog(null);
  const [spoken, announce] = useState("");
  const [text, setText] = useState("");
  const filter = useRef(null);
  const requests = useMemo(
    () => new Requests(settings.keep * settings.workers.total, () => redraw((count) => count + 1)),
    [],
  );
  useStream(requests, setState);
  useTicks(requests);
  useEffect(() => {
    const onAddress = () => setOpened(ofAddress("request"));
    addEventListener("hashchange", onAddress);
    document.addEventListener("keydown", onKey);
    return () => {
      removeEventListener("hashchange", onAddress);
      document.removeEventListener("keydown", onKey);
    };
  }, []);

  const open = (id, byKey = false, against = null) => {
    location.hash = new URLSearchParams(against === null ? { request: id } : { request: id, against });
    setAt({ ...at, current: id });
    setEntered(byKey ? id : null);
  };
  const close = () => {
    history.pushState(null, "", location.pathname + location.search);
    setOpened(null);
    setAt({ ...at, moves: at.moves + 1 });
  };
  const moveTo = (position) => {
    const row = requests.rows[Math.max(0, Math.min(position, requests.rows.length - 1))];
    if (row === undefined) return;
    setAt({ current: row.id, moves: at.moves + 1 });
    setEntered(null);
    if (opened !== null) location.replace(`#request=${encodeURIComponent(row.id)}`);
  };
  const position = requests.rows.findIndex((row) => row.id === at.current);
  const newest = () => {
    setFollow(true);
    moveTo(0);
  };
  const search = (text) => {
    setFollow(true);
    requests.load(text).then(() => announce(`${counted(requests.matching, "request")} found.`));
  };
  useCommands({
    next: () => moveTo(position + 1),
    previous: () => moveTo(position - 1),
    first: () => moveTo(0),
    last: () => moveTo(requests.rows.length - 1),
    open: () => at.current !== null && open(at.current, true),
    back: () => opened !== null && close(),
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
    <${Bar} ...${{ settings, state, requests }} onDialog=${setDialog}>
      <${Filter} input=${filter} text=${text} onText=${setText} onFilter=${search} onEnter=${newest} error=${failed} />
    </${Bar}>
    <${Warnings} workers=${settings.workers} error=${failed ? null : requests.error} />
    <main class=${opened === null ? "" : "has-request"}>
      <section class="list" aria-label="Requests">
        ${
          requests.loaded && requests.rows.length === 0
            ? html`<${Empty} filter=${requests.filter} settings=${settings} announce=${announce} />`
            : html`<${RequestList}
                requests=${requests}
                current=${at.current}
                moves=${at.moves}
                opened=${opened}
                follow=${follow}
                onCurrent=${(id) => setAt({ ...at, current: id })}
                onOpen=${open}
                onFollow=${setFollow}
              />`
        }
        <${ListFoot}
          requests=${requests}
          follow=${follow}
          filter=${text}
          onFilter=${setText}
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
          view=${view}
          onView=${setView}
          onClose=${close}
          onOpen=${(id, against) => open(id, true, against)}
          onFilter=${setText}
          announce=${announce}
        />`
      }
    </main>
    <p class="unseen" role="status" aria-live="polite">${spoken}</p>
    ${dialog === "doctor" && html`<${DoctorDialog} allowed=${settings.send} onClose=${closeDialog} />`}
    ${dialog === "settings" && html`<${SettingsDialog} onClose=${closeDialog} />`}
    ${dialog === "keys" && html`<${KeysDialog} onClose=${closeDialog} />`}
    ${dialog === "forget" && html`<${ForgetDialog} ...${{ requests, announce }} onClose=${closeDialog} />`}`;
}

// A part of the address behind `#`: the opened request, and the one it is compared with.
function ofAddress(name) {
  return new URLSearchParams(location.hash.slice(1)).get(name);
}

// The time of a live request goes on while nothing is heard of it.
function useTicks(requests) {
  useEffect(() => {
    const tick = () => !document.hidden && requests.rows.some((row) => row.live) && requests.onChange();
    const timer = setInterval(tick, 1000);
    return () => clearInterval(timer);
  }, []);
}

// The list is loaded when the stream begins, and again when it comes back: what happened meanwhile is then in it.
function useStream(requests, setState) {
  useEffect(() => {
    const onState = (state) => {
      setState(state);
      if (state === "live" || state === "recorded") requests.load();
    };
    const onRefused = (error) => {
      requests.error = error;
      setState("lost");
    };
    const stream = new ChangeStream({ onChanges: (changes) => requests.take(changes), onState, onRefused });
    stream.start();
    return () => stream.stop();
  }, []);
}

document.body.replaceChildren();
render(html`<${Page} />`, document.body);
