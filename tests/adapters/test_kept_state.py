"""What the gateway keeps is asked for and reported, also where the client's dialect has no place for it."""

from collections.abc import Sequence

import msgspec
import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.client.decode import decode_document
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json, Reasoning, Text, Turn
from gateway.core.events import Event, PassthroughFields, ReasoningDelta, ReasoningEnd
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.state_rule import StateRule
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES

MESSAGES = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
RESPONSES = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
CHAT = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
OPENROUTER = Policy(profile=PROFILES["openrouter"])
# The dialect of no backend here.
ELSEWHERE = "ollama"
QUESTION = Turn("user", (Text("Hello"),))


def exchange(adapter: Adapter, keeps: StateRule | None, *turns: Turn, policy: Policy | None = None) -> Exchange:
    conversation = Conversation((QUESTION, *turns), model="m", dialect=ELSEWHERE, keeps=keeps)
    return Exchange(adapter, conversation, policy or Policy())


def answered(exchange: Exchange, answer: Json) -> list[Event]:
    return [*exchange.feed(msgspec.json.encode(answer)), *exchange.close()]


def sent(exchange: Exchange) -> dict[str, Json]:
    body: dict[str, Json] = msgspec.json.decode(exchange.request.body)
    return body


def rules(events: Sequence[Event]) -> set[str]:
    return {event.rule for event in events if isinstance(event, Notice)}


def test_each_piece_of_thinking_is_reported_with_its_state_in_its_place() -> None:
    message: Json = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [
            {"type": "thinking", "thinking": "one", "signature": "s1"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "Hi"},
            {"type": "thinking", "thinking": "two", "signature": "s2"},
        ],
    }  # fmt: skip
    for keeps in (MESSAGES.capabilities.state, None):
        kept = answered(exchange(MESSAGES, keeps), message)
        pieces = [event for event in kept if isinstance(event, ReasoningDelta | ReasoningEnd)]
        assert [type(piece).__name__ for piece in pieces] == [
            "ReasoningDelta", "ReasoningEnd", "ReasoningEnd", "ReasoningDelta", "ReasoningEnd",
        ]  # fmt: skip


def completion(**fields: Json) -> Json:
    message: Json = {"role": "assistant", "content": "Hi", **fields}
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def test_a_field_of_the_message_is_reported_and_the_others_are_told() -> None:
    details: Json = [{"type": "reasoning.text", "text": "hm"}]
    answer = completion(reasoning_details=details, audio={"id": "a"})
    state = PROFILES["openrouter"].state
    kept = answered(exchange(CHAT, state, policy=OPENROUTER), answer)
    assert [event.fields for event in kept if isinstance(event, PassthroughFields)] == [{"reasoning_details": details}]
    assert "FIELD_NOT_SHOWN" in rules(kept)
    without = answered(exchange(CHAT, None, policy=OPENROUTER), answer)
    assert not [event for event in without if isinstance(event, PassthroughFields)]


def test_a_field_that_was_kept_is_sent_to_its_provider_alone() -> None:
    turn = Turn("assistant", (Text("Hi"),), extra={"reasoning_details": [1], "other": 2})
    openrouter = exchange(CHAT, PROFILES["openrouter"].state, turn, policy=OPENROUTER)
    messages = sent(openrouter)["messages"]
    assert isinstance(messages, list)
    assert messages[1] == {"role": "assistant", "content": "Hi", "reasoning_details": [1]}
    dropped = [notice.detail for notice in openrouter.notices if notice.rule == "FIELD_NOT_SENT"]
    assert dropped == ["the backend has no field for other (1) of messages"]
    assert "reasoning_details" not in exchange(CHAT, None, turn).request.body.decode()


def test_encrypted_reasoning_is_asked_for_only_where_it_is_kept() -> None:
    assert "include" not in sent(exchange(RESPONSES, None))
    assert sent(exchange(RESPONSES, RESPONSES.capabilities.state))["include"] == ["reasoning.encrypted_content"]


@pytest.mark.parametrize("include", [None, ["file_search_call.results"], ["reasoning.encrypted_content"]])
def test_what_a_client_of_the_same_dialect_asks_for_stays(include: Json) -> None:
    asked: dict[str, Json] = {"model": "m", "input": "Hello", **({"include": include} if include else {})}
    conversation = decode_document(read_document(msgspec.json.encode(asked))).conversation
    kept = msgspec.structs.replace(conversation, keeps=RESPONSES.capabilities.state)
    wanted = [*(include if isinstance(include, list) else [])]
    wanted += [] if "reasoning.encrypted_content" in wanted else ["reasoning.encrypted_content"]
    assert sent(Exchange(RESPONSES, kept, Policy()))["include"] == wanted


def test_the_phase_of_a_message_is_reported_and_sent() -> None:
    message: Json = {
        "type": "message", "id": "x", "role": "assistant", "status": "completed", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
    }  # fmt: skip
    response: Json = {"id": "r", "object": "response", "status": "completed", "output": [message]}
    kept = answered(exchange(RESPONSES, RESPONSES.capabilities.state), response)
    assert {"phase": "commentary"} in [event.fields for event in kept if isinstance(event, PassthroughFields)]
    items = sent(
        exchange(RESPONSES, None, Turn("assistant", (Reasoning(""), Text("Hi")), extra={"phase": "commentary"}))
    )["input"]
    assert isinstance(items, list)
    assert isinstance(items[-1], dict)
    assert items[-1]["phase"] == "commentary"
