"""What OpenAI's Responses API got in 2026 is told by its name where the other side has no place for it, both ways.

Source: the types of the package `openai` (3.54 and later): `response_output_message.phase`,
`response_function_tool_call.caller`, `response_input_item` (`program`, `program_output`, `configuration_update`),
`response_compaction_compacting_event`, `function_tool` (`allowed_callers`, `output_schema`).
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import Connection, FaultyBackend, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway

USER: Final[Json] = {"role": "user", "content": "x"}
FUNCTION: Final[dict[str, Json]] = {"type": "function", "name": "f", "parameters": {"type": "object"}}
PROGRAM: Final[dict[str, Json]] = {"type": "program", "id": "p1", "call_id": "c", "code": "x", "fingerprint": "f"}
OUTPUT: Final[dict[str, Json]] = {
    "type": "program_output",
    "id": "p2",
    "call_id": "c",
    "result": "r",
    "status": "completed",
}
CALLER: Final[Json] = {"type": "program", "caller_id": "p1"}
CALL: Final[dict[str, Json]] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}


def text(text: str, **fields: Json) -> dict[str, Json]:
    content: Json = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content, **fields}


def response(*output: Json) -> dict[str, Json]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [*output],
    }


CHAT: Final[dict[str, Json]] = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
}


@pytest.fixture
async def backend() -> AsyncIterator[FaultyBackend]:
    async def plain(connection: Connection) -> None:
        await connection.send(answer("200 OK", json.dumps(CHAT).encode(), b"content-type: application/json"))

    async with faulty_backend(plain) as started:
        yield started


@pytest.fixture
async def gateway(backend: FaultyBackend) -> AsyncIterator[RunningGateway]:
    entries: dict[str, Json] = {
        name: {"adapter": adapter, "base_url": f"{backend.base_url}/v1"}
        for name, adapter in (("chat", "openai_chat"), ("responses", "openai_responses"))
    }
    models: dict[str, Json] = {name: {"backend": name} for name in entries}
    async with running_gateway({"backends": entries, "models": models}) as started:
        started.client.headers["x-dragoman-explain"] = "1"
        yield started


def told(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The notices about what is not sent or not shown."""
    notices = body["dragoman"]["diagnostics"]
    wanted = ("FIELD_NOT_SENT", "PART_NOT_SENT", "FIELD_NOT_SHOWN", "ITEM_NOT_SENT", "TOOL_NOT_SENT", "UNKNOWN_EVENT")
    return [(one["rule"], one["detail"]) for one in notices if one["rule"] in wanted]


SENT: Final[Mapping[str, tuple[dict[str, Json], list[tuple[str, str]]]]] = {
    "phase": (
        {"input": [USER, text("a", phase="commentary"), USER]},
        [("FIELD_NOT_SENT", "the backend has no field for phase (1) of input")],
    ),
    "caller": (
        {
            "input": [
                USER,
                {**CALL, "caller": CALLER},
                {"type": "function_call_output", "call_id": "call_1", "output": "r"},
            ]
        },
        [("FIELD_NOT_SENT", "the backend has no field for caller (1) of input")],
    ),
    "programs": (
        {"input": [USER, PROGRAM, OUTPUT, USER]},
        [
            ("ITEM_NOT_SENT", "no other API has an item of type 'program'"),
            ("ITEM_NOT_SENT", "no other API has an item of type 'program_output'"),
        ],
    ),
    "tools": (
        {
            "input": "x",
            "tools": [
                {"type": "programmatic_tool_calling"},
                {**FUNCTION, "allowed_callers": ["programmatic"], "output_schema": {"type": "object"}},
            ],
        },
        [
            ("TOOL_NOT_SENT", "the backend has no tool of type 'programmatic_tool_calling'"),
            ("FIELD_NOT_SENT", "the backend has no field for allowed_callers (1), output_schema (1) of tools"),
        ],
    ),
    "agents": (
        {"input": "x", "multi_agent": {"enabled": True}},
        [("FIELD_NOT_SENT", "no other API has a field for 'multi_agent'")],
    ),
}
SHOWN: Final[Mapping[str, tuple[list[Json], list[tuple[str, str]]]]] = {
    "phase": (
        [text("a", phase="commentary"), text("b", id="m2", phase="final_answer")],
        [("FIELD_NOT_SHOWN", "the client's dialect has no field for phase")],
    ),
    "caller": (
        [{**CALL, "caller": CALLER}],
        [("FIELD_NOT_SHOWN", "the client's dialect has no field for caller")],
    ),
    "programs": (
        [PROGRAM, OUTPUT, text("a")],
        [
            ("UNKNOWN_EVENT", "an output item of type program has no form in the client's dialect"),
            ("UNKNOWN_EVENT", "an output item of type program_output has no form in the client's dialect"),
        ],
    ),
    "compaction": (
        [{"type": "compaction", "id": "cmp_1", "encrypted_content": "A"}, text("a")],
        [("UNKNOWN_EVENT", "an output item of type compaction has no form in the client's dialect")],
    ),
}


@pytest.mark.parametrize("name", SENT)
async def test_what_a_client_sends_and_the_backend_has_no_place_for(gateway: RunningGateway, name: str) -> None:
    fields, expected = SENT[name]
    made = await gateway.client.post("/v1/responses", json={"model": "chat", **fields})
    assert made.status_code == 200, made.text
    assert told(made.json()) == expected


@pytest.mark.parametrize("name", SHOWN)
async def test_what_a_backend_sends_and_the_client_has_no_place_for(
    gateway: RunningGateway, backend: FaultyBackend, name: str
) -> None:
    output, expected = SHOWN[name]

    async def whole(connection: Connection) -> None:
        body = json.dumps(response(*output)).encode()
        await connection.send(answer("200 OK", body, b"content-type: application/json"))

    backend.script = whole
    made = await _chat(gateway)
    assert told(made.json()) == expected
    assert made.json()["choices"][0]["message"]


async def test_an_event_about_a_compaction_is_told(gateway: RunningGateway, backend: FaultyBackend) -> None:
    async def streamed(connection: Connection) -> None:
        begun = {**response(), "status": "in_progress"}
        events: list[dict[str, Json]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.compaction.compacting", "output_index": 0, "item_id": "cmp_1"},
            {"type": "response.completed", "response": response(text("a"))},
        ]
        body = b"".join(
            b"data: %b\n\n" % json.dumps({**e, "sequence_number": n}).encode() for n, e in enumerate(events)
        )
        await connection.send(answer("200 OK", body, b"content-type: text/event-stream"))

    backend.script = streamed
    made = await _chat(gateway, stream=True)
    assert "an event of type response.compaction.compacting has no form in the client's dialect" in made.text


async def _chat(gateway: RunningGateway, **fields: Json) -> httpx.Response:
    tools: Json = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    made = await gateway.chat(model="responses", tools=tools, **fields)
    assert made.status_code == 200, made.text
    return made
