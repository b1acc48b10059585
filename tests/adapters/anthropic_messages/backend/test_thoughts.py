"""Several pieces of thinking of one answer come back to the API with their texts, signatures and places.

Source: Anthropic, "Preserved thinking": each thinking block records the one before it, so that one that is left out or
moved makes every later one invalid.
"""

import itertools
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from gateway.core.conversation import Conversation
from gateway.core.policy import Policy
from gateway.dialect import AnswerHead, Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from tests.tiers import sample

ADAPTER: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
LABEL: Final = "Dragoman0123456789abcdef"
HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "m", lambda: 1_700_000_000)
HELLO: Final[dict[str, Any]] = {"role": "user", "content": "Hello"}
PARAMETERS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
TOOLS: Final[dict[str, list[dict[str, Any]]]] = {
    "openai_chat": [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}],
    "openai_responses": [{"type": "function", "name": "f", "parameters": PARAMETERS}],
}

Block = dict[str, Any]


@st.composite
def contents(draw: st.DrawFn) -> list[Block]:
    """The content of an answer that ends with calls, in an order that a message of chat completions can say."""
    number = itertools.count()

    def thoughts() -> list[Block]:
        found: list[Block] = []
        for _ in range(draw(st.integers(0, 2))):
            if draw(st.booleans()):
                text = draw(st.sampled_from(["", "hm", "so \u00e9\U0001f600"]))
                found.append({"type": "thinking", "thinking": text, "signature": f"S{next(number)}"})
            else:
                found.append({"type": "redacted_thinking", "data": f"D{next(number)}"})
        return found

    content = thoughts()
    if draw(st.booleans()):
        content += [{"type": "text", "text": "a"}, *thoughts()]
    for call in range(draw(st.integers(1, 2))):
        content += [
            {"type": "tool_use", "id": f"c{call}", "name": "f", "input": {}},
            *(thoughts() if call == 0 else []),
        ]
    return content


def whole(content: list[Block]) -> bytes:
    return json.dumps(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 5, "output_tokens": 1},
        }
    ).encode()


def streamed(content: list[Block]) -> bytes:
    usage = {"input_tokens": 5, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "model": "m", "role": "assistant", "usage": usage}}
    ]
    for index, block in enumerate(content):
        opened, deltas = dict(block), list[dict[str, Any]]()
        if block["type"] == "thinking":
            opened |= {"thinking": "", "signature": ""}
            deltas += [{"type": "thinking_delta", "thinking": piece} for piece in block["thinking"]]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if block["type"] == "text":
            opened |= {"text": ""}
            deltas.append({"type": "text_delta", "text": block["text"]})
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}})
    events.append({"type": "message_stop"})
    return "".join([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]).encode()


def decoded(dialect: Dialect, items: list[Block], stream: bool) -> Any:
    field = "messages" if dialect.name == "openai_chat" else "input"
    body = {"model": "m", field: items, "tools": TOOLS[dialect.name], "stream": stream}
    return dialect.decode(read_document(json.dumps(body).encode()), RequestHead(""))


def exchange(conversation: Conversation) -> Exchange:
    return Exchange(ADAPTER, conversation, Policy(), label=LABEL)


def kept(dialect: Dialect, items: list[Block], answer: bytes, stream: bool) -> list[Block]:
    """What a client keeps of an answer: the message of a completion, or the items of a response."""
    request = decoded(dialect, items, stream)
    made = exchange(request.conversation)
    made.on_response_head(200, {"content-type": "text/event-stream" if stream else "application/json"})
    events = [*made.feed(answer), *made.close()]
    if not stream:
        said = json.loads(dialect.encode_answer(request, HEAD, events))
        return [said["choices"][0]["message"]] if dialect.name == "openai_chat" else said["output"]
    encoder = dialect.stream_encoder(request, HEAD)
    data = encoder.feed(events) + encoder.close()
    chunks = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]
    if dialect.name == "openai_responses":
        output: list[Block] = chunks[-1]["response"]["output"]
        return output
    return [joined([chunk["choices"][0]["delta"] for chunk in chunks])]


def joined(deltas: list[Block]) -> Block:
    """A message as OpenAI's SDKs join it: texts grow, objects are joined, the elements of lists by their `index`."""
    message: Block = {"role": "assistant", "content": None, "tool_calls": []}
    for delta in deltas:
        for call in delta.pop("tool_calls", []):
            if call["index"] == len(message["tool_calls"]):
                message["tool_calls"].append(call)
            else:
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        for name, value in delta.items():
            old = message.get(name)
            assert not (name == "extra_content" and old), "the states arrive in one piece"
            message[name] = old + value if isinstance(old, str) and name != "role" else value
    return message


def results(name: str, content: list[Block]) -> list[Block]:
    calls = [block["id"] for block in content if block["type"] == "tool_use"]
    if name == "openai_chat":
        return [{"role": "tool", "tool_call_id": call, "content": "ok"} for call in calls]
    return [{"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls]


@sample()
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
@given(content=contents())
def test_every_piece_of_thinking_comes_back_at_its_place(name: str, stream: bool, content: list[Block]) -> None:
    dialect = load_dialect(name)
    answer = kept(dialect, [HELLO], (streamed if stream else whole)(content), stream)
    request = decoded(dialect, [HELLO, *answer, *results(name, content)], stream)
    sent = json.loads(exchange(request.conversation).request.body)
    assert sent["messages"][1] == {"role": "assistant", "content": content}


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
def test_a_state_reaches_only_the_backend_that_made_it(name: str) -> None:
    dialect = load_dialect(name)
    content: list[Block] = [
        {"type": "thinking", "thinking": "one", "signature": "S1"},
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "two", "signature": "S2"},
        {"type": "tool_use", "id": "c0", "name": "f", "input": {}},
    ]
    answer = kept(dialect, [HELLO], whole(content), False)
    request = decoded(dialect, [HELLO, *answer, *results(name, content)], False)
    other = Exchange(ADAPTER, request.conversation, Policy(), label="Dragomanfedcba9876543210")
    assert json.loads(other.request.body)["messages"][1]["content"] == [content[1], content[3]]
    assert "STATE_FOREIGN" in {notice.rule for notice in other.notices}


def test_changed_text_of_several_thoughts_is_not_cut_into_pieces() -> None:
    dialect = load_dialect("openai_chat")
    content: list[Block] = [
        {"type": "thinking", "thinking": "one", "signature": "S1"},
        {"type": "thinking", "thinking": "two", "signature": "S2"},
        {"type": "tool_use", "id": "c0", "name": "f", "input": {}},
    ]
    (message,) = kept(dialect, [HELLO], whole(content), False)
    message["reasoning_content"] = "on"
    request = decoded(dialect, [HELLO, message, *results("openai_chat", content)], False)
    sent = json.loads(exchange(request.conversation).request.body)["messages"][1]["content"]
    assert [block.get("thinking") for block in sent] == ["", "", None]
