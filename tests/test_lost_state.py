"""State of an answer reaches the client of every dialect, or the client is told that it has none; never both."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import state_label
from gateway.dialect import AnswerHead, ClientRequest
from gateway.exchange import Exchange
from gateway.testing.dialect_case import DialectCase
from tests.dialects.cases import CASES
from tests.tiers import sample

HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "a-model", lambda: 1_700_000_000)
LABEL: Final = state_label("adapter", "host", "KEY")
# As the providers write it: base64, of a whole number of bytes.
SIGNED, HIDDEN, OF_CALL = "U0lHTkVE", "SElEREVO", "T0YgQ0FMTA=="
NOT_SHOWN: Final = "STATE_NOT_SHOWN"
DECLINED: Final = "REASONING_NOT_SHOWN"


class Wire(NamedTuple):
    """An answer, streamed and whole, with these states; `call` has a call, with one more state where the API has it."""

    adapter: Adapter
    streamed: Sequence[Mapping[str, Any]]
    whole: Mapping[str, Any]
    states: tuple[str, ...]

    def bytes(self, *, stream: bool) -> bytes:
        if not stream:
            return json.dumps(self.whole).encode()
        lines = [
            (f"event: {one['type']}\n" if "type" in one else "") + f"data: {json.dumps(one)}\n\n"
            for one in self.streamed
        ]
        return "".join(lines).encode()


def messages(*, call: bool, signed: bool = True) -> Wire:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Hm.", "signature": SIGNED if signed else ""},
        *([{"type": "redacted_thinking", "data": HIDDEN}] if signed else []),
        {"type": "text", "text": "Yes."},
        *([{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}] if call else []),
    ]
    stop = "tool_use" if call else "end_turn"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    deltas: dict[str, list[dict[str, Any]]] = {
        "thinking": [
            {"type": "thinking_delta", "thinking": "Hm."},
            {"type": "signature_delta", "signature": SIGNED if signed else ""},
        ],
        "redacted_thinking": [],
        "text": [{"type": "text_delta", "text": "Yes."}],
        "tool_use": [{"type": "input_json_delta", "partial_json": "{}"}],
    }
    empty = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "usage": usage}}
    ]
    for index, block in enumerate(blocks):
        kind = block["type"]
        begun = {**block, **empty.get(kind, {})}
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas[kind]]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}})
    events.append({"type": "message_stop"})
    whole = {**head, "content": blocks, "stop_reason": stop, "usage": usage}
    adapter = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
    return Wire(adapter, events, whole, (SIGNED, HIDDEN) if signed else ())


def gemini(*, call: bool, signed: bool = True) -> Wire:
    first: dict[str, Any] = {"thoughtSignature": SIGNED} if signed else {}
    second: dict[str, Any] = {"thoughtSignature": OF_CALL} if signed else {}
    parts: list[dict[str, Any]] = [
        {"text": "Hm.", "thought": True},
        {"text": "Yes.", **first},
        *([{"functionCall": {"name": "look", "args": {}}, **second}] if call else []),
    ]

    def chunk(found: list[dict[str, Any]], **more: str) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": found}, "index": 0, **more}]}

    states = ((SIGNED, OF_CALL) if call else (SIGNED,)) if signed else ()
    streamed = [*(chunk([part]) for part in parts), chunk([{"text": ""}], finishReason="STOP")]
    return Wire(GeminiAdapter(GeminiOptions(), 1 << 20), streamed, chunk(parts, finishReason="STOP"), states)


def responses(*, call: bool, signed: bool = True) -> Wire:
    state: dict[str, Any] = {"encrypted_content": SIGNED} if signed else {}
    text = {"type": "output_text", "text": "Yes.", "annotations": []}
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], **state},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]},
        *(
            [{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"}]
            if call
            else []
        ),
    ]
    whole = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": items}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(items):
        begun = {name: value for name, value in item.items() if name != "encrypted_content"}
        begun |= {name: [] for name in ("summary", "content") if name in item}
        begun |= {"arguments": ""} if "arguments" in item else {}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    adapter = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
    return Wire(adapter, events, whole, (SIGNED,) if signed else ())


WIRES: Final = {"messages": messages, "gemini": gemini, "responses": responses}
cases = pytest.mark.parametrize("case", CASES, ids=str)
wires = pytest.mark.parametrize("name", WIRES)
streams = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
calls = pytest.mark.parametrize("call", [True, False], ids=["call", "text"])


def request(case: DialectCase, *, stream: bool) -> ClientRequest:
    """A request that the case's own client writes."""
    body = json.dumps(case.dialect().example("m")).encode()
    asked = case.decode(body, Conversation((), model="m"))
    return msgspec.structs.replace(asked, conversation=msgspec.structs.replace(asked.conversation, stream=stream))


def answered(case: DialectCase, wire: Wire, *, stream: bool) -> tuple[str, list[str]]:
    """What the client gets, and the notices of the answer."""
    dialect, asked = case.dialect(), request(case, stream=stream)
    conversation = asked.conversation
    opened = Exchange(wire.adapter, conversation, Policy(), label=LABEL)
    opened.on_response_head(200, {})
    events: list[Event] = []
    for piece in wire.bytes(stream=stream).splitlines(keepends=True):
        events += opened.feed(piece)
    events += [*opened.close(), *opened.estimate()]
    if stream:
        encoder = dialect.stream_encoder(asked, HEAD)
        data = b"".join([encoder.feed([event]) for event in events]) + encoder.close()
    else:
        data = dialect.encode_answer(asked, HEAD, events)
    return data.decode(), [event.rule for event in events if isinstance(event, Notice)]


@sample(("case", "name"), "call", "stream")
@cases
@wires
@calls
@streams
def test_state_reaches_the_client_or_is_told(case: DialectCase, name: str, *, call: bool, stream: bool) -> None:
    if call and "calls" not in case.reads:
        pytest.skip("a call fails the answer")
    wire = WIRES[name](call=call)
    data, rules = answered(case, wire, stream=stream)
    lost = [state for state in wire.states if state not in data]
    # What a client declines as a whole is told as that.
    declined = request(case, stream=stream).conversation.reads.isdisjoint({"reasoning", "state"})
    assert rules.count(DECLINED if declined else NOT_SHOWN) == (1 if lost else 0)
    assert not declined or NOT_SHOWN not in rules


@sample(("case", "name"), "stream")
@cases
@wires
@streams
def test_an_answer_without_state_is_not_told(case: DialectCase, name: str, *, stream: bool) -> None:
    _, rules = answered(case, WIRES[name](call="calls" in case.reads, signed=False), stream=stream)
    assert NOT_SHOWN not in rules
