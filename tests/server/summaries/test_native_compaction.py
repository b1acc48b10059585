"""A summary never covers what a provider has compacted by itself, over the wires of both APIs that have such a thing:
it stands for messages that nobody else can restore."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.registry import load_dialect
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.summaries.scripted import WINDOW, ScriptedModel, agent_history, agent_round
from tests.server.summaries.test_wires import settled

# An item of `openai.types.responses.ResponseCompactionItemParam`; a block of Anthropic's beta `compact-2026-01-12`.
ITEM: Final[dict[str, Json]] = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-opaque"}
BLOCK: Final[dict[str, Json]] = {"type": "compaction", "content": "The user wants the ledger ported."}
COMPACTIONS: Final[dict[str, dict[str, Json]]] = {
    "openai_responses": ITEM,
    "anthropic_messages": {"role": "assistant", "content": [BLOCK]},
}
ANSWERS: Final[dict[str, dict[str, Json]]] = {
    "openai_responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Noted.", "annotations": []}],
            }
        ],
    },
    "anthropic_messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Noted."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 1},
    },
}
PATHS: Final = {"openai_responses": "/v1/responses", "anthropic_messages": "/v1/messages"}


class Wire:
    """A client and a backend of one API, and the model that writes summaries for it. `sent` are the messages of each
    request that the backend got."""

    def __init__(self, name: str, gateway: RunningGateway, writer: ScriptedModel, bodies: list[dict[str, Any]]) -> None:
        self._dialect = load_dialect(name)
        self._field = self._dialect.paths.param("messages")
        self._path = PATHS[name]
        self.gateway = gateway
        self.writer = writer
        self._bodies = bodies

    @property
    def sent(self) -> list[Any]:
        messages: list[Any] = self._bodies[-1][self._field]
        return messages

    @property
    def has_compaction(self) -> bool:
        """Whether the newest request has the compaction as the client wrote it."""
        blocks = [part for one in self.sent for part in (one, *_parts(one))]
        return ITEM in blocks or BLOCK in blocks

    def history(self, messages: list[Json]) -> list[Any]:
        """Returns messages of the default dialect in the words of this one."""
        read = load_dialect().decode(Document({"model": "m", "messages": messages}), RequestHead(""))
        return [one for turn in read.conversation.turns for one in self._dialect.encode_turn(turn)]

    def body(self, messages: list[Any]) -> dict[str, Any]:
        return {"model": "m", "max_tokens": 1000, self._field: messages}

    async def ask(self, messages: list[Any]) -> None:
        body = self.body(messages)
        if self._field == "input":
            del body["max_tokens"]
        response = await self.gateway.client.post(self._path, json=body)
        assert response.status_code == 200, response.text
        await settled(self.gateway)


def _parts(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


@asynccontextmanager
async def wire(name: str) -> AsyncIterator[Wire]:
    bodies: list[dict[str, Any]] = []

    async def script(connection: Connection) -> None:
        bodies.append(json.loads(connection.body))
        await connection.send(answer("200 OK", json.dumps(ANSWERS[name]).encode(), b"content-type: application/json"))

    writer = ScriptedModel()
    async with AsyncExitStack() as stack:
        written = await stack.enter_async_context(faulty_backend(writer.script))
        served = await stack.enter_async_context(faulty_backend(script))
        settings: dict[str, Json] = {
            "compress": {"enabled": True, "model": "w"},
            "state": {"deadline_ms": 10_000},
            "backends": {
                "b": {"adapter": name, "base_url": served.base_url},
                "w": {"adapter": "openai_chat", "base_url": written.base_url},
            },
            "models": {
                "m": {"backend": "b", "context_length": WINDOW},
                "w": {"backend": "w", "context_length": WINDOW, "compress": {"enabled": False}},
            },
        }
        gateway = await stack.enter_async_context(running_gateway(settings))
        yield Wire(name, gateway, writer, bodies)


@pytest.mark.parametrize("name", COMPACTIONS)
async def test_a_compaction_in_the_middle_is_sent_behind_the_summary_of_what_stands_before_it(name: str) -> None:
    async with wire(name) as one:
        compaction = COMPACTIONS[name]
        before = one.history([*agent_history(18)[1:], {"role": "user", "content": "Go on."}])
        for rounds in range(27, 31):
            behind = one.history([part for n in range(18, rounds) for part in agent_round(n)])
            await one.ask([*before, compaction, {"role": "user", "content": "And now the rest."}, *behind])
            assert one.has_compaction
        assert len(one.writer.summarised) == 1
        assert "this summary of them stands instead" in json.dumps(one.sent)
        # What stands behind the compaction is sent.
        assert all(f"def step_{number}()" in json.dumps(one.sent) for number in range(18, rounds))


@pytest.mark.parametrize("name", COMPACTIONS)
async def test_a_history_that_begins_with_a_compaction_is_never_summarised(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with wire(name) as one:
        for rounds in range(26, 30):
            history = one.history(agent_history(rounds)[1:])
            await one.ask([history[0], COMPACTIONS[name], *history])
            assert one.has_compaction and "stands instead" not in json.dumps(one.sent)
        assert not one.writer.summarised
    assert caplog.text.count("COMPRESSION_FUTILE") == 1
