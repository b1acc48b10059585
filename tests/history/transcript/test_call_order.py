"""A text pairs calls and results by their order."""

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, ToolSpec, Turn
from gateway.core.policy import FlattenOptions, Policy
from gateway.exchange import Exchange
from gateway.history.apply_profile import apply_profile
from gateway.history.classify import classify
from gateway.history.prepare import prepare
from gateway.history.transcript.render import flatten, in_call_order
from gateway.history.transcript.styles import STYLES
from gateway.providers.profile import NEUTRAL
from gateway.tool_calls.parsers.formats import FORMATS
from tests.adapters.text.backend.encoded_request import sent
from tests.history.strategies import assistant, broken_turns, calling, conversation, numbered, result, system, user

IDS = ["a", "b", "c", "d"]
ORDERS = st.permutations(IDS)


def asked(order: list[str]) -> Conversation:
    return conversation(user(), calling(*IDS), *(result(call_id, f"of {call_id}") for call_id in order), user("And?"))


def results_in(text: str) -> list[str]:
    return sorted(IDS, key=lambda call_id: text.index(f"of {call_id}"))


@given(ORDERS, st.sampled_from(sorted(STYLES)))
def test_every_style_tells_results_in_the_order_of_their_calls(order: list[str], style: str) -> None:
    policy = msgspec.convert({"flatten": {"style": style}}, Policy)
    told = flatten(asked(order), policy)
    assert told.text == flatten(asked(IDS), policy).text and results_in(told.text) == IDS
    moved = [notice.rule for notice in told.notices]
    assert moved == ([] if order == IDS else ["RESULTS_IN_CALL_ORDER"])


@given(ORDERS, st.sampled_from(sorted(FORMATS)), st.sampled_from(sorted(STYLES)))
def test_every_format_tells_them_so(order: list[str], name: str, style: str) -> None:
    policy = msgspec.convert({"flatten": {"style": style}}, Policy)
    tools = (ToolSpec("read"),)
    body = sent(msgspec.structs.replace(asked(order), tools=tools), policy, tool_format=name)
    assert body == sent(msgspec.structs.replace(asked(IDS), tools=tools), policy, tool_format=name)
    assert results_in(body["prompt"]) == IDS


@given(ORDERS)
def test_so_do_calls_as_plain_turns_and_the_flat_encoding_of_a_protobuf_wire(order: list[str]) -> None:
    plain = msgspec.structs.replace(NEUTRAL, tool_turns="text")
    profiled = apply_profile(asked(order), plain)
    assert results_in("\n".join(turn.text for turn in profiled.conversation.turns)) == IDS
    assert ("RESULTS_IN_CALL_ORDER" in [notice.rule for notice in profiled.notices]) is (order != IDS)
    adapter = WarpAdapter(WarpOptions(), 1 << 20)
    assert (
        Exchange(adapter, asked(order), Policy()).request.body == Exchange(adapter, asked(IDS), Policy()).request.body
    )


@given(broken_turns())
def test_nothing_but_the_order_of_results_changes(turns: tuple[Turn, ...]) -> None:
    ordered, notices = in_call_order(turns)
    assert sorted(map(repr, ordered)) == sorted(map(repr, turns))
    assert [turn for turn in ordered if not turn.results] == [turn for turn in turns if not turn.results]
    assert bool(notices) == (ordered != turns)
    assert in_call_order(ordered) == (ordered, [])


@given(ORDERS, st.integers(1, 3))
def test_results_of_one_turn_are_sorted_like_those_of_several(order: list[str], together: int) -> None:
    results = [result(call_id, f"of {call_id}") for call_id in order]
    batches = [results[at : at + together] for at in range(0, len(order), together)]
    answering = [batch[0].changed(*(block for turn in batch for block in turn.blocks)) for batch in batches]
    turns = numbered(user(), calling(*IDS), *answering, user("And?"))
    ordered, notices = in_call_order(turns)
    assert [found.call_id for turn in ordered for found in turn.results] == IDS
    assert (ordered[:2], ordered[-1]) == (turns[:2], turns[-1])
    assert bool(notices) == (order != IDS) and (notices or ordered == turns)


def test_equal_and_unknown_ids_keep_their_order() -> None:
    turns = numbered(calling("a", "a", "b"), result("x"), result("a", "1"), result("b"), result("a", "2"))
    ordered, _ = in_call_order(turns)
    assert [turn.results[0].text for turn in ordered[1:]] == ["1", "2", "ok", "ok"]
    assert ordered[-1].results[0].call_id == "x"


LATE = (user(), calling("a", "b"), result("a", "of a"), assistant("I have a."), result("b", "of b"))


@pytest.mark.parametrize("style", STYLES)
def test_a_result_that_came_last_asks_for_an_answer_wherever_it_is_told(style: str) -> None:
    policy = Policy(flatten=msgspec.convert({"style": style}, FlattenOptions))
    prepared = prepare(conversation(*LATE), policy).conversation
    assert prepared.turns[-1].role == "assistant"
    told = flatten(prepared, policy)
    assert told.implicit_added and told.text.rindex(policy.flatten.continuation) > told.text.index("I have a.")
    assert told.text.index("of b") < told.text.index("I have a.")


REPEATED = (user(), calling("a"), result("a", "of a"), assistant("I have a."), result("a", "again"))
STRAY = (user(), assistant("I have nothing."), result("x", "of x"))
TEXT_WIRES: Final[dict[str, Adapter]] = {
    "text": TextAdapter(TextOptions(wire="llama_cpp"), 1 << 20),
    "warp": WarpAdapter(WarpOptions(encoding="flatten"), 1 << 20),
}


@pytest.mark.parametrize("turns", [REPEATED, STRAY, (*REPEATED, system())])
@pytest.mark.parametrize("wire", TEXT_WIRES)
def test_a_result_that_came_last_asks_for_an_answer_also_where_it_is_dropped(
    wire: str, turns: tuple[Turn, ...]
) -> None:
    policy = Policy(orphaned_results="drop")
    exchange = Exchange(TEXT_WIRES[wire], conversation(*turns), policy)
    assert "dropped" in [notice.action for notice in exchange.notices if notice.stage == "repair"]
    assert [turn.role for turn in exchange.conversation.turns if turn.role != "system"][-1] == "assistant"
    sent = exchange.request.sent_text
    assert sent is not None and policy.flatten.continuation in sent.text


@pytest.mark.parametrize("wire", TEXT_WIRES)
def test_a_dropped_result_before_the_last_words_asks_for_none(wire: str) -> None:
    for turns in ((*REPEATED, assistant("More.")), (*REPEATED, user("And b?"))):
        sent = Exchange(TEXT_WIRES[wire], conversation(*turns), Policy()).request.sent_text
        assert sent is not None and Policy().flatten.continuation not in sent.text


def test_words_of_the_model_that_came_last_and_a_new_question_ask_for_none() -> None:
    said = conversation(user(), calling("a"), result("a"), assistant())
    assert not classify(prepare(said, Policy()).conversation.turns).awaiting_continuation
    asked_again = conversation(user(), calling("a"), user("Hurry!"), result("a"))
    turns = prepare(asked_again, Policy()).conversation.turns
    assert turns[-1].role == "user" and not classify(turns).awaiting_continuation
