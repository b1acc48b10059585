"""The table of the laboratory's events: each is one of its APIs, and each is felt by a client."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from gateway.core.conversation import Json, JsonObject
from gateway.demo.lab.apis import fault_of
from gateway.demo.lab.event import APIS, Api, LabEvent
from gateway.demo.lab.events import EVENTS
from gateway.demo.lab.model import NOTES, PROMPT
from gateway.demo.lab.serve import serve_lab
from tests.tiers import sample

_SCHEMA: Final[Json] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_USER: Final[Json] = [{"role": "user", "content": PROMPT}]
_LATE: Final[Json] = [{"role": "user", "content": PROMPT}, {"role": "system", "content": "Be brief."}]
_VERSION: Final = {"anthropic-version": "2023-06-01"}
# The regular answer, later or in other writes.
_SILENCES: Final = ("silence_before_head", "silence_before_text", "silence")
_SAME: Final = (*_SILENCES, "split_characters")


def _chat(messages: Json, tools: bool) -> tuple[str, JsonObject]:
    function: Json = {"name": "read_file", "parameters": _SCHEMA}
    offered: Json = [{"type": "function", "function": function}] if tools else []
    usage: Json = {"include_usage": True}
    return "/v1/chat/completions", {
        "model": "m", "stream": True, "messages": messages, "tools": offered, "stream_options": usage
    }  # fmt: skip


def _responses(messages: Json, tools: bool) -> tuple[str, JsonObject]:
    offered: Json = [{"type": "function", "name": "read_file", "parameters": _SCHEMA}] if tools else []
    return "/v1/responses", {"model": "m", "stream": True, "input": messages, "tools": offered}


def _messages(messages: Json, tools: bool) -> tuple[str, JsonObject]:
    offered: Json = [{"name": "read_file", "input_schema": _SCHEMA}] if tools else []
    fields: JsonObject = {"model": "m", "stream": True, "max_tokens": 1000, "messages": messages, "tools": offered}
    return "/v1/messages", fields


def _gemini(messages: Json, tools: bool) -> tuple[str, JsonObject]:
    parts: Json = [{"text": PROMPT}]
    contents: Json = [{"role": "user", "parts": parts}]
    declared: Json = [{"functionDeclarations": [{"name": "read_file", "parametersJsonSchema": _SCHEMA}]}]
    return "/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": contents, "tools": declared if tools else []}


_REQUESTS: Final = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}


async def felt(api: Api, event: LabEvent | None, folder: Path, *, late: bool, tools: bool) -> tuple[Any, bool]:
    """The status and body that a client gets (or how it fails), and whether the event has struck."""
    path, body = _REQUESTS[api](_LATE if late else _USER, tools)
    async with (
        serve_lab(folder, event, 0.0, tools=tools, name="m", websocket=False) as lab,
        httpx.AsyncClient() as client,
    ):
        try:
            got = await client.post(
                f"{lab.base_url}{path}", json=body, headers=_VERSION, timeout=2 if held(event) else 30
            )
        except httpx.TransportError as error:
            return type(error), lab.seen[0].struck
        return (got.status_code, got.headers.get("content-type"), got.content), lab.seen[0].struck


def held(event: LabEvent | None) -> bool:
    """Whether the connection stays open, so that only a limit of the test ends it."""
    return event is not None and event.name == "held_open"


PAIRS: Final = [(api, event) for event in EVENTS for api in APIS if api in event.faults]


@sample()
@pytest.mark.parametrize(("api", "event"), PAIRS, ids=[f"{event.name}-{api}" for api, event in PAIRS])
async def test_every_event_strikes_and_changes_what_the_client_gets(api: Api, event: LabEvent, tmp_path: Path) -> None:
    how = {"late": event.name == "system_refused", "tools": event.place == "call"}
    regular, untouched = await felt(api, None, tmp_path, **how)
    got, struck = await felt(api, event, tmp_path, **how)
    assert (untouched, struck) == (False, True)
    assert regular[0] == 200
    assert (got == regular) == (event.name in _SAME)


def test_the_names_of_the_events_are_their_own() -> None:
    assert [name for name, number in Counter(event.name for event in EVENTS).items() if number > 1] == []


def test_every_api_has_most_of_the_events() -> None:
    assert len(EVENTS) >= 60
    assert {api: sum(api in event.faults for event in EVENTS) >= 50 for api in APIS} == dict.fromkeys(APIS, True)


@pytest.mark.parametrize("api", APIS)
def test_a_silence_is_as_long_as_it_is_told(api: Api) -> None:
    lengths = {event.name: fault_of(event, api, 7.0) for event in EVENTS if event.name in _SILENCES}
    assert {name: fault and fault.options["seconds"] for name, fault in lengths.items()} == dict.fromkeys(
        _SILENCES, "7.0"
    )


def test_the_prompt_names_the_file_that_is_read() -> None:
    assert NOTES in PROMPT
