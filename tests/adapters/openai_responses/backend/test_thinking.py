"""What clients of other APIs say of thinking, in the words of the Responses API: an effort that the model takes, and
the thoughts as a summary.

Sources: OpenAI, API reference, `reasoning` of `POST /v1/responses` (`summary` is "auto, concise, or detailed"), and the
efforts of its models; `max` is an effort of gpt-6 and of this API alone.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from adapters.anthropic_messages.client.decode import decode_document as decode_messages
from adapters.openai_chat.client.decode import decode_document as decode_chat
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from gateway.core.conversation import Conversation, Json
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.exchange import Exchange

ADAPTER: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
HELLO: Final[Json] = [{"role": "user", "content": "hi"}]


def chat(model: str, fields: Mapping[str, Any]) -> Conversation:
    return decode_chat(Document({"messages": HELLO, "model": model, **fields}))


def messages(model: str, fields: Mapping[str, Any]) -> Conversation:
    document = Document({"messages": HELLO, "model": model, "max_tokens": 50, **fields})
    return decode_messages(document, RequestHead("")).conversation


def sent(conversation: Conversation, base_model: str | None = None) -> tuple[Json, list[str]]:
    exchange = Exchange(ADAPTER, conversation, Policy(base_model=base_model))
    return json.loads(exchange.request.body).get("reasoning"), [notice.rule for notice in exchange.notices]


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gpt-5", "none", "minimal"),
        ("gpt-5", "max", "high"),
        ("gpt-5.1", "minimal", "low"),
        ("gpt-5.2", "max", "xhigh"),
        ("gpt-6", "max", "max"),
        ("gpt-6", "none", "none"),
        ("o3", "minimal", "low"),
        ("gpt-4.1", "high", None),
        # Of others nothing is known.
        ("m", "max", "max"),
        ("m", "none", "none"),
    ],
)
def test_an_effort_is_sent_as_the_nearest_that_the_model_takes(model: str, effort: str, expected: str | None) -> None:
    reasoning, told = sent(chat(model, {"reasoning_effort": effort}))
    assert reasoning == (None if expected is None else {"effort": expected})
    assert told == ([] if expected == effort else ["EFFORT_NOT_SENT" if expected is None else "EFFORT_CHANGED"])


@pytest.mark.parametrize(
    ("model", "thinking", "expected", "told"),
    [
        ("gpt-5", {"type": "adaptive"}, {"summary": "auto"}, []),
        ("gpt-5", {"type": "adaptive", "display": "summarized"}, {"summary": "auto"}, []),
        ("gpt-5", {"type": "adaptive", "display": "omitted"}, None, []),
        ("gpt-5", {"type": "disabled"}, {"effort": "minimal"}, ["EFFORT_CHANGED"]),
        ("gpt-5.2", {"type": "disabled"}, {"effort": "none"}, []),
        ("m", {"type": "disabled"}, {"effort": "none"}, []),
        ("gpt-4.1", {"type": "adaptive"}, None, ["FIELD_NOT_SENT"]),
        # It thinks of nothing: that is what the client asks for.
        ("gpt-4.1", {"type": "disabled"}, None, []),
    ],
)
def test_a_client_of_messages_gets_the_thoughts_that_it_asks_for(
    model: str, thinking: dict[str, Any], expected: Json, told: list[str]
) -> None:
    assert sent(messages(model, {"thinking": thinking})) == (expected, told)


def test_an_effort_and_thoughts_are_asked_for_together() -> None:
    asked = messages("gpt-6", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}})
    assert sent(asked) == ({"effort": "max", "summary": "auto"}, [])


@pytest.mark.parametrize(
    ("limit", "expected", "told"),
    [(1, 16, ["MAX_TOKENS_RAISED"]), (15, 16, ["MAX_TOKENS_RAISED"]), (16, 16, []), (0, None, ["FIELD_NOT_SENT"])],
)
def test_a_limit_below_the_least_is_sent_as_that(limit: int, expected: int | None, told: list[str]) -> None:
    exchange = Exchange(ADAPTER, chat("m", {"max_tokens": limit}), Policy())
    assert json.loads(exchange.request.body).get("max_output_tokens") == expected
    assert [notice.rule for notice in exchange.notices] == told


def test_the_base_model_decides_where_a_deployment_hides_it() -> None:
    assert sent(chat("my-deployment", {"reasoning_effort": "max"})) == ({"effort": "max"}, [])
    assert sent(chat("my-deployment", {"reasoning_effort": "max"}), "gpt-5") == ({"effort": "high"}, ["EFFORT_CHANGED"])
