"""The Responses API of the laboratory over a WebSocket, with the client of another project."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.core.conversation import Json
from gateway.demo.lab.events import EVENTS
from gateway.demo.lab.model import ANSWER, PROMPT
from gateway.demo.lab.serve import LabServer, serve_lab

TOOLS: Final[list[Json]] = [
    {
        "type": "function",
        "name": "read_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]
USER: Final[Json] = {"role": "user", "content": PROMPT}


@asynccontextmanager
async def connected(folder: Path, name: str | None = None) -> AsyncIterator[tuple[LabServer, ClientConnection]]:
    """A laboratory, with an event or without one, and a WebSocket to it."""
    event = next((event for event in EVENTS if event.name == name), None)
    async with serve_lab(folder, event, 0.0, tools=False, name="m", websocket=True) as lab:
        address = lab.base_url.replace("http", "ws")
        async with connect(f"{address}/v1/responses", proxy=None) as socket:
            yield lab, socket


async def ask(socket: ClientConnection, **fields: Json) -> list[Any]:
    """The events up to the one that ends the response. (Any: JSON.)"""
    await socket.send(json.dumps({"type": "response.create", "model": "m", **fields}))
    events: list[Any] = []
    while not events or events[-1]["type"] not in ("response.completed", "response.failed", "error"):
        events.append(json.loads(await socket.recv()))
    return events


async def test_a_call_and_its_result_go_over_one_connection_which_remembers_the_rest(tmp_path: Path) -> None:
    async with connected(tmp_path) as (lab, socket):
        asked = (await ask(socket, input=[USER], tools=TOOLS))[-1]["response"]
        (call,) = asked["output"]
        result: Json = {"type": "function_call_output", "call_id": call["call_id"], "output": "the notes"}
        told = (await ask(socket, input=[result], tools=TOOLS, previous_response_id=asked["id"]))[-1]["response"]
    assert told["output"][0]["content"][0]["text"] == ANSWER
    assert [(one.rounds, one.results, one.websocket) for one in lab.seen] == [(0, (), True), (1, ("the notes",), True)]


async def test_what_is_only_to_be_remembered_gets_no_answer(tmp_path: Path) -> None:
    async with connected(tmp_path) as (lab, socket):
        warm = (await ask(socket, input=[USER], generate=False))[-1]["response"]
        told = await ask(socket, input=[], previous_response_id=warm["id"])
    assert (warm["output"], len(lab.seen)) == ([], 1)
    assert told[-1]["response"]["output"][0]["content"][0]["text"] == ANSWER


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"input": [USER], "previous_response_id": "resp_unknown"}, 400),
        ({"input": []}, 400),
    ],
    ids=["an unknown response", "no input"],
)
async def test_a_refusal_is_an_event_with_its_status(fields: dict[str, Json], status: int, tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, socket):
        (told,) = await ask(socket, **fields)
    assert (told["type"], told["status"], bool(told["error"]["message"])) == ("error", status, True)


async def test_a_message_that_is_no_json_is_refused_and_the_next_one_answered(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, socket):
        await socket.send("{")
        assert json.loads(await socket.recv())["status"] == 400
        assert (await ask(socket, input=[USER]))[-1]["type"] == "response.completed"


async def test_an_error_status_keeps_its_headers(tmp_path: Path) -> None:
    async with connected(tmp_path, "rate_limited") as (_, socket):
        (told,) = await ask(socket, input=[USER])
    assert (told["status"], told["headers"]["retry-after"]) == (429, "1")


@pytest.mark.parametrize(("name", "code"), [("ended_early", 1000), ("disconnected", 1006)])
async def test_an_answer_that_breaks_off_closes_the_connection(name: str, code: int, tmp_path: Path) -> None:
    async with connected(tmp_path, name) as (_, socket):
        with pytest.raises(ConnectionClosed) as closed:
            await ask(socket, input=[USER])
    received = closed.value.rcvd
    assert (1006 if received is None else received.code) == code


async def test_what_is_of_server_sent_events_alone_does_not_strike(tmp_path: Path) -> None:
    async with connected(tmp_path, "comments") as (lab, socket):
        await ask(socket, input=[USER])
    assert [one.struck for one in lab.seen] == [False]


async def test_without_websockets_the_upgrade_is_refused(tmp_path: Path) -> None:
    async with serve_lab(tmp_path, None, 0.0, tools=False, name="m", websocket=False) as lab:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{lab.base_url.replace('http', 'ws')}/v1/responses", proxy=None)
    assert refused.value.response.status_code == 426
