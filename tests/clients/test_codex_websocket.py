"""The real Codex does a job of three commands over a WebSocket (`make clients`), through a backend of each kind: its
requests come over one connection, and each but the first has what is new alone."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.conversation import Json
from gateway.demo.serve import serve_demo
from gateway.dialects.websocket import ClientEvent, CreateEvent
from gateway.server.api import websocket_request
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.clients.test_codex_compaction import needs_codex, run
from tests.long_jobs.job import FACTS, TASK, LongJob
from tests.server.api.test_websocket_sdk import WIRES

pytestmark = needs_codex

ROUNDS: Final = 3
CONFIG: Final = """\
model = "m"
model_provider = "dragoman"
model_context_window = 272000
[model_providers.dragoman]
name = "Dragoman"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
supports_websockets = true
"""


class Asked(msgspec.Struct, frozen=True):
    """A request of Codex: what it continues, and how many items it sends."""

    previous: str | None
    items: int
    generates: bool


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """The requests that come over WebSockets."""
    found: list[Asked] = []
    plain = OpenAIResponsesDialect.read_event

    def read(text: str) -> ClientEvent:
        event = plain(text)
        if isinstance(event, CreateEvent):
            said = msgspec.json.decode(event.body)
            one = Asked(said.get("previous_response_id"), len(said["input"]), said.get("generate", True))
            found.append(one)
        return event

    monkeypatch.setattr(OpenAIResponsesDialect, "read_event", staticmethod(read))
    return found


@asynccontextmanager
async def serving(wire: str) -> AsyncIterator[tuple[RunningGateway, LongJob]]:
    job = LongJob(ROUNDS)
    kind, entry = WIRES[wire]
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(
            serve_demo(kind, model=lambda dialogue: job.reply(dialogue, backend.requests[-1].body))
        )
        settings: dict[str, Json] = {
            "max_tool_results": None,
            "max_history_messages": None,
            "backends": {"b": {**entry, "base_url": backend.base_url}},
            "models": {"m": {"backend": "b", "context_length": 272_000}},
        }
        yield await stack.enter_async_context(running_gateway(settings)), job


@pytest.mark.parametrize("wire", WIRES)
async def test_a_job_sends_what_is_new_alone(tmp_path: Path, wire: str, asked: list[Asked]) -> None:
    async with serving(wire) as (gateway, job):
        printed = await run(tmp_path, CONFIG.format(url=gateway.base_url), TASK)
    assert (len(job.rounds), job.lost, job.ended, job.last) == (ROUNDS, [], 1, FACTS)
    assert all(fact in printed for fact in FACTS)
    # Codex prepares its first request with one that generates nothing.
    assert [one.generates for one in asked] == [False, *[True] * (ROUNDS + 1)]
    assert asked[0].previous is None and all(one.previous for one in asked[1:])
    assert [one.items for one in asked[2:]] == [1] * ROUNDS


async def test_a_job_goes_on_after_its_connection_was_cut(
    tmp_path: Path, asked: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of an answer. Codex opens another connection, and sends its whole history there."""
    plain = websocket_request.WebSocketRequest.close
    ended = 0

    def close(self: websocket_request.WebSocketRequest, body: bytes = b"") -> None:
        nonlocal ended
        ended += 1
        if ended == ROUNDS:
            self.cut()
        else:
            plain(self, body)

    monkeypatch.setattr(websocket_request.WebSocketRequest, "close", close)
    async with serving("chat") as (gateway, job):
        printed = await run(tmp_path, CONFIG.format(url=gateway.base_url), TASK)
    assert all(fact in printed for fact in FACTS) and job.ended == 1
    # The call of the answer that was cut was never run.
    assert job.lost == [ROUNDS - 1]
    assert sum(one.previous is None for one in asked) == 2
