"""What Anthropic's API got in 2026 is told by its name where the backend of a client has no place for it.

Source: the types of the package `anthropic` (2.14): `beta_thinking_config_between_tools`, `beta_fallback_param`,
`beta_fallback_block_param`, `beta_tool_use_block_param.caller`, `beta_tool_param`.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import Connection, FaultyBackend, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.openai_responses.test_new_fields import CHAT, told

USER: Final[Json] = {"role": "user", "content": "x"}
CALL: Final[Json] = {
    "type": "tool_use",
    "id": "t1",
    "name": "f",
    "input": {},
    "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"},
}
RESULT: Final[Json] = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]}
SWITCH: Final[Json] = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}


@pytest.fixture
async def backend() -> AsyncIterator[FaultyBackend]:
    async def plain(connection: Connection) -> None:
        await connection.send(answer("200 OK", json.dumps(CHAT).encode(), b"content-type: application/json"))

    async with faulty_backend(plain) as started:
        yield started


@pytest.fixture
async def gateway(backend: FaultyBackend) -> AsyncIterator[RunningGateway]:
    entry: Json = {"adapter": "openai_chat", "base_url": f"{backend.base_url}/v1"}
    async with running_gateway({"backends": {"chat": entry}, "models": {"m": {"backend": "chat"}}}) as started:
        started.client.headers["x-dragoman-explain"] = "1"
        yield started


ASKED: Final[Mapping[str, tuple[dict[str, Json], list[tuple[str, str]]]]] = {
    "thinking between tools": (
        {"thinking": {"type": "between_tools"}},
        [("FIELD_NOT_SENT", "the backend has no field for 'thinking'")],
    ),
    "fallbacks": ({"fallbacks": [{"model": "b"}]}, [("FIELD_NOT_SENT", "no other API has a field for 'fallbacks'")]),
    "a switch to another model": (
        {"messages": [USER, {"role": "assistant", "content": [SWITCH, {"type": "text", "text": "t"}]}, USER]},
        [("PART_NOT_SENT", "no other API has content blocks of type 'fallback'; left out: 1")],
    ),
    "the caller of a call": (
        {"messages": [USER, {"role": "assistant", "content": [CALL]}, RESULT]},
        [("FIELD_NOT_SENT", "the backend has no field for caller (1) of messages")],
    ),
    "fields of a tool": (
        {
            "tools": [
                {
                    "name": "f",
                    "input_schema": {"type": "object"},
                    "allowed_callers": ["code_execution_20260120"],
                    "output_schema": {"type": "object"},
                }
            ]
        },
        [("FIELD_NOT_SENT", "the backend has no field for allowed_callers (1), output_schema (1) of tools")],
    ),
    "fields of the request": (
        {"speed": "fast", "diagnostics": {"previous_message_id": None}},
        [
            ("FIELD_NOT_SENT", "no other API has a field for 'speed'"),
            ("FIELD_NOT_SENT", "no other API has a field for 'diagnostics'"),
        ],
    ),
}


@pytest.mark.parametrize("name", ASKED)
async def test_what_has_no_place_is_told(gateway: RunningGateway, backend: FaultyBackend, name: str) -> None:
    fields, expected = ASKED[name]
    asked: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [USER], **fields}
    made = await gateway.client.post("/v1/messages", json=asked)
    assert made.status_code == 200, made.text
    assert told(made.json()) == expected
    sent = backend.seen[0][1].decode()
    assert "caller" not in sent and "fallback" not in sent and "between_tools" not in sent
