"""Steering an answer of a backend of the same API in its reasoning: what a client keeps of it, and what its backend
gets again. OpenAI refuses reasoning whose item is not whole, and reasoning behind which nothing follows."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest
from openai.types.responses import ResponseReasoningItem

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.server.api.test_steering import STEERED, steer, until
from tests.server.backend import END, HEAD, Connection, chunk, faulty_backend
from tests.server.conftest import PATIENT, settings_for
from tests.server.websocket_client import LAST, connected

RESPONSE: Final[dict[str, Json]] = {"id": "resp_b", "object": "response", "created_at": 1, "model": "m", "output": []}
THOUGHT: Final[dict[str, Json]] = {"id": "rs_1", "type": "reasoning", "summary": []}
PART: Final[dict[str, Json]] = {"type": "summary_text", "text": ""}
PLACE: Final[dict[str, Json]] = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}


def event(kind: str, **fields: Json) -> bytes:
    document = {"type": f"response.{kind}", "sequence_number": 0, **fields}
    return chunk(b"event: response.%s\ndata: %s\n\n" % (kind.encode(), json.dumps(document).encode()))


BEGUN: Final = (
    event("created", response={**RESPONSE, "status": "in_progress"}),
    event("output_item.added", output_index=0, item={**THOUGHT, "encrypted_content": "begun"}),
    event("reasoning_summary_part.added", **PLACE, part=PART),
    event("reasoning_summary_text.delta", **PLACE, delta="hm"),
)
WHOLE: Final = (
    event("reasoning_summary_text.done", **PLACE, text="hm"),
    event("reasoning_summary_part.done", **PLACE, part={**PART, "text": "hm"}),
    event(
        "output_item.done",
        output_index=0,
        item={**THOUGHT, "summary": [{**PART, "text": "hm"}], "encrypted_content": "whole"},
    ),
)
MESSAGE: Final[dict[str, Json]] = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
SAYING: Final = (
    event("output_item.added", output_index=1, item={**MESSAGE, "status": "in_progress"}),
    event(
        "content_part.added",
        item_id="msg_1",
        output_index=1,
        content_index=0,
        part={"type": "output_text", "text": "", "annotations": []},
    ),
    event("output_text.delta", item_id="msg_1", output_index=1, content_index=0, delta="Yes"),
)
SAID: Final = (
    event("created", response={**RESPONSE, "status": "in_progress"}),
    event("completed", response={**RESPONSE, "status": "completed"}),
)


@pytest.mark.parametrize(
    ("pieces", "last", "state", "again"),
    [
        (BEGUN, "response.reasoning_summary_text.delta", None, ["message"]),
        ((*BEGUN, *WHOLE), "response.output_item.done", "whole", ["message"]),
        ((*BEGUN, *WHOLE, *SAYING), "response.output_text.delta", "whole", ["reasoning", "message", "message"]),
    ],
)
async def test_what_a_steered_answer_leaves_of_reasoning_is_what_its_backend_takes_again(
    pieces: Sequence[bytes], last: str, state: str | None, again: list[str]
) -> None:
    async def script(connection: Connection) -> None:
        if STEERED.encode() in connection.body:
            await connection.send(HEAD, *SAID, END)
            return
        await connection.send(HEAD, *pieces)
        await connection.gone()

    async with faulty_backend(script) as backend:
        timeouts: Json = {**PATIENT}
        entry: Json = {"adapter": "openai_responses", "base_url": f"{backend.base_url}/v1", "timeouts": timeouts}
        raw: dict[str, Json] = {**settings_for(""), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(raw) as gateway, connected(gateway, "x-dragoman-explain: 1") as socket:
            socket.create(include=["reasoning.encrypted_content"])
            first = (await until(socket, last))[0]["response"]["id"]
            steer(socket, first)
            [thought, *_] = (await until(socket, "response.incomplete"))[-1]["response"]["output"]
            kept = ResponseReasoningItem.model_validate(thought).encrypted_content
            # The gateway writes before it whose it is.
            assert kept is state or (kept and state and kept.endswith(state))
            assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
            ended: dict[str, Any] = (await until(socket, *LAST))[-1]
            assert ended["type"] == "response.completed"
            rules = [one["rule"] for one in ended["response"]["dragoman"]["diagnostics"]]
            assert ("REASONING_NOT_SENT" in rules) is (again == ["message"])
        sent = json.loads(backend.seen[-1][1])["input"]
    assert [item["type"] for item in sent[1:]] == again
    assert b"begun" not in backend.seen[-1][1]
