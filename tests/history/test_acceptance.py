"""Every short broken history: a strict backend rejects most of them unchanged, and none after repair."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Final

import pytest

from adapters.openai_chat.backend.adapter import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.history.prepare import prepare
from gateway.history.transcript.render import flatten
from tests.e2e.checkers import check_chat, check_text


def _calling(*ids: str) -> JsonObject:
    calls: list[Json] = [
        {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for call_id in ids
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _result(call_id: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": f"result of {call_id}"}


MESSAGES: Final[dict[str, JsonObject]] = {
    "user": {"role": "user", "content": "question"},
    "assistant": {"role": "assistant", "content": "answer"},
    "call a": _calling("a"),
    "calls a b": _calling("a", "b"),
    "result a": _result("a"),
    "result b": _result("b"),
    "result x": _result("x"),
}
LONGEST: Final = 4
HISTORIES: Final = tuple(chain.from_iterable(product(MESSAGES, repeat=size) for size in range(1, LONGEST + 1)))


def _messages(history: Sequence[str]) -> list[Json]:
    return [dict(MESSAGES[name]) for name in history]


def _sent(history: Sequence[str], policy: Policy) -> Json:
    body = json.dumps({"model": "m", "messages": _messages(history)}).encode()
    exchange = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20), decode(body), policy)
    sent: Json = json.loads(exchange.request.body)["messages"]
    return sent


def _is_accepted(messages: Json) -> bool:
    try:
        check_chat(messages)
    except AssertionError:
        return False
    return True


def _refused() -> Iterator[tuple[str, ...]]:
    return (history for history in HISTORIES if not _is_accepted(_messages(history)))


def test_most_of_these_histories_would_be_refused() -> None:
    assert len(HISTORIES) == 2800
    assert sum(1 for _ in _refused()) > 0.9 * len(HISTORIES)


def test_no_history_is_refused_after_repair() -> None:
    assert [history for history in HISTORIES if not _is_accepted(_sent(history, Policy()))] == []


@pytest.mark.parametrize(
    "policy",
    [
        Policy(max_tool_results=0, max_history_messages=0, tool_result_overflow="drop"),
        Policy(max_tool_results=1, max_history_messages=1),
    ],
    ids=["nothing old", "one of each"],
)
def test_no_history_is_refused_after_repair_and_trimming(policy: Policy) -> None:
    assert [history for history in HISTORIES if not _is_accepted(_sent(history, policy))] == []


def test_every_history_as_text_tells_whole_rounds_and_every_word() -> None:
    for history in HISTORIES:
        body = json.dumps({"model": "m", "messages": _messages(history)}).encode()
        prepared = prepare(decode(body), Policy())
        text = flatten(prepared.conversation, Policy()).text
        check_text(text)
        dropped = sum(notice.action == "dropped" for notice in prepared.notices)
        assert text.count("question") == history.count("user")
        assert text.count("answer") == history.count("assistant")
        assert text.count("result of ") + dropped == sum(name.startswith("result") for name in history)


def test_an_accepted_history_is_sent_as_it_came() -> None:
    accepted = [history for history in HISTORIES if _is_accepted(_messages(history))]
    assert accepted
    assert [history for history in accepted if _sent(history, Policy()) != _messages(history)] == []


def test_strict_mode_refuses_exactly_what_a_provider_would_refuse() -> None:
    strict = Policy(repair="strict")
    refused = set(_refused())
    for history in HISTORIES:
        if history in refused:
            with pytest.raises(InvalidRequest):
                _sent(history, strict)
        else:
            assert _sent(history, strict) == _messages(history)
