"""Runs a client once without an event, and then once for each event of its API."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.errors import SettingsError
from gateway.demo.lab.apis import LAB_APIS
from gateway.demo.lab.event import Api, LabEvent
from gateway.demo.lab.model import LAST_WORD
from gateway.demo.lab.outcome import Outcome, ending, had_file, judge
from gateway.demo.lab.report import Report
from gateway.demo.lab.request import Seen
from gateway.demo.lab.run_client import Place, Ran, filled, lab_environ, run_client, temporary_place
from gateway.demo.lab.serve import serve_lab

_SHOWN: Final = 2000

# Writes the files of a client for the laboratory at an address into the home folder, and returns its variables.
Configure: TypeAlias = Callable[[Place, str], Mapping[str, str]]


class Client(msgspec.Struct, frozen=True):
    """A client and how it is run: what it is called in the report, its command with placeholders, the name of the
    model, variables that the user adds, what configures it, and `environ`, the environment of the laboratory."""

    title: str
    command: tuple[str, ...]
    model: str
    given: Mapping[str, str]
    configure: Configure
    environ: Mapping[str, str]


class Limits(msgspec.Struct, frozen=True):
    """The most seconds of a run, the seconds of a silence, the number of runs at once, and whether the Responses API is
    there over a WebSocket, too."""

    time: float
    silence: float
    jobs: int
    websocket: bool = True


class _Run(msgspec.Struct, frozen=True):
    seen: tuple[Seen, ...]
    ran: Ran


async def examine_client(
    client: Client, events: Sequence[LabEvent], limits: Limits, tell: Callable[[str], None]
) -> Report:
    """Returns what becomes of each event that the client's API has; `tell` gets the name of each as it begins. Raises
    SettingsError for a client that gets no answer even where nothing strikes, and where a run cannot begin."""
    tell("without an event")
    regular = await _run(client, None, limits, tools=False)
    api, tool = _learnt(regular)
    tools = any(one.tools for one in regular.seen)
    turns = asyncio.Semaphore(limits.jobs)

    async def outcome(event: LabEvent) -> Outcome:
        async with turns:
            tell(event.name)
            found = await _run(client, event, limits, tools=tools)
        return judge(event, found.seen, found.ran, regular.ran.printed, reads=had_file(regular.seen))

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(event)) for event in events if api in event.faults]
    except ExceptionGroup as failed:
        unstarted, others = failed.split(SettingsError)
        if unstarted is None or others is not None:
            raise
        raise unstarted.exceptions[0] from failed
    over = ", over a WebSocket" if any(one.websocket for one in regular.seen) else ""
    title = f"{LAB_APIS[api].title}{over}"
    return Report(client.title, api, title, tool, tuple(task.result() for task in tasks))


async def _run(client: Client, event: LabEvent | None, limits: Limits, *, tools: bool) -> _Run:
    try:
        return await _begun(client, event, limits, tools=tools)
    except OSError as error:
        raise SettingsError(f"{client.command[0]!r} cannot be started: {error.strerror}") from error


async def _begun(client: Client, event: LabEvent | None, limits: Limits, *, tools: bool) -> _Run:
    with temporary_place() as place:
        serving = serve_lab(
            place.folder, event, limits.silence, tools=tools, name=client.model, websocket=limits.websocket
        )
        async with serving as lab:
            given = {**client.configure(place, lab.base_url), **client.given}
            environ = lab_environ(place, lab.base_url, given, client.environ)
            command = filled(client.command, lab.base_url, client.model, place.folder)
            ran = await run_client(command, place.folder, environ, limits.time)
        return _Run(tuple(lab.seen), ran)


def _learnt(regular: _Run) -> tuple[Api, str]:
    """Returns the API that a client speaks, and the tool of its own that reads a file. Raises SettingsError."""
    own = [one for one in regular.seen if one.own]
    if not regular.seen:
        raise SettingsError(f"the client asked for no answer; {_printed(regular.ran)}")
    if refused := next((one.refused for one in regular.seen if one.refused), ""):
        raise SettingsError(f"the client sent what its API refuses: {refused}; {_printed(regular.ran)}")
    if not own:
        raise SettingsError(f"no request of the client has the prompt: put {{prompt}} into it; {_printed(regular.ran)}")
    if LAST_WORD not in regular.ran.printed or regular.ran.status != 0:
        raise SettingsError(f"the client does not show an answer without any fault; {_printed(regular.ran)}")
    return own[0].api, next((one.reads for one in own if one.rounds), "")


def _printed(ran: Ran) -> str:
    return f"{ending(ran)}; it printed: {ran.printed[-_SHOWN:].strip() or '(nothing)'}"
