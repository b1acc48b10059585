"""`function_call` and role `function`: names pair calls and results, and clients never see generated ids."""

import re
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Conversation, Json, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.prepare import Prepared, prepare
from gateway.history.transcript.render import flatten
from gateway.history.validate import validate


def read(messages: list[Json]) -> Conversation:
    return decode(msgspec.json.encode({"model": "m", "messages": messages}))


def user(text: str = "hello") -> Json:
    return {"role": "user", "content": text}


def called(name: str) -> Json:
    return {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}}


def calling(call_id: Json, name: str = "f") -> Json:
    return beside(call_id, name, None)


def beside(call_id: Json, name: str, function_call: Json) -> Json:
    """A call in `tool_calls`, with a `function_call` beside it."""
    entry: Json = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [entry], "function_call": function_call}


def answered(name: Json, text: str = "ok") -> Json:
    return {"role": "function", "name": name, "content": text}


def bindings(turns: tuple[Turn, ...]) -> list[tuple[int | None, int | None]]:
    """The indices of each answer and of the call it answers."""
    calls = {call.id: turn.index for turn in turns for call in turn.calls}
    return [(turn.index, calls.get(result.call_id)) for turn in turns for result in turn.results]


def told(prepared: Prepared) -> list[tuple[str, int | None, str | None]]:
    return [(one.rule, one.index, one.tool_call_id) for one in prepared.notices if one.stage == "repair"]


def words(notices: tuple[Notice, ...]) -> str:
    return " ".join(f"{notice.detail} {notice.tool_call_id}" for notice in notices if notice.stage == "repair")


def test_a_result_of_another_function_answers_nothing_and_no_made_id_is_told() -> None:
    prepared = prepare(read([user(), called("f"), answered("g", "of g")]), Policy())
    assert told(prepared) == [("CALLS_UNANSWERED", 1, None), ("TOOL_ID_UNKNOWN", 2, None)]
    assert "the function_call of 'f'" in prepared.notices[0].detail
    assert "no open call of messages[1] is a call of 'g'" in prepared.notices[1].detail
    assert "call_function" not in words(prepared.notices)
    (_, _, failed, note) = prepared.conversation.turns
    assert failed.results[0].is_error and failed.results[0].synthesized
    assert note.role == "user" and note.text.endswith("that is not in this conversation]\nof g")
    assert "call_function" not in note.text


def test_the_violations_of_the_deprecated_form_name_its_own_fields() -> None:
    found = validate(read([user(), called("f"), answered("g"), user(), answered("h")]))
    assert [(one.rule, one.param, one.tool_call_id) for one in found] == [
        ("CALLS_UNANSWERED", "messages[1].tool_calls", None),
        ("TOOL_ID_UNKNOWN", "messages[2].name", None),
        ("TOOL_ORPHAN", "messages[4].role", None),
    ]
    assert "call_function" not in str(found)


PAIRED: dict[str, tuple[list[Json], list[tuple[int | None, int | None]]]] = {
    "one after the other": ([called("f"), answered("f"), called("f"), answered("f")], [(1, 0), (3, 2)]),
    "two of one name, first first": ([called("f"), called("f"), answered("f"), answered("f")], [(2, 0), (3, 1)]),
    "two of two names": ([called("f"), called("g"), answered("g"), answered("f")], [(3, 0), (2, 1)]),
    "the nearest, not one that was given up": ([called("f"), user(), called("f"), answered("f")], [(None, 0), (3, 2)]),
    "a late one": ([called("f"), user(), answered("f")], [(2, 0)]),
    "the first of three, then a new call": (
        [called("f"), called("f"), answered("f"), called("f"), answered("f"), answered("f")],
        [(2, 0), (5, 1), (4, 3)],
    ),
    "one of tool_calls": ([calling("a", "f"), answered("f")], [(1, 0)]),
    "beside an answered one of tool_calls": (
        [calling("a", "f"), {"role": "tool", "tool_call_id": "a", "content": "x"}, called("f"), answered("f")],
        [(1, 0), (3, 2)],
    ),
    "a tool message without an id": ([called("f"), {"role": "tool", "content": "x"}], [(1, 0)]),
    "a function message without a name": ([called("f"), {"role": "function", "content": "x"}], [(1, 0)]),
    "an id of the client's that looks made": (
        [
            calling("call_function_2", "g"),
            {"role": "tool", "tool_call_id": "call_function_2", "content": "x"},
            called("f"),
            answered("f"),
        ],
        [(1, 0), (3, 2)],
    ),
}


@pytest.mark.parametrize("case", PAIRED)
def test_a_name_binds_to_the_first_open_call_of_the_nearest_run(case: str) -> None:
    messages, expected = PAIRED[case]
    prepared = prepare(read(messages), Policy())
    assert bindings(prepared.conversation.turns) == expected
    assert "'call_function" not in words(prepared.notices)


@pytest.mark.parametrize("case", ["one after the other", "beside an answered one of tool_calls"])
def test_a_sound_history_in_the_deprecated_form_breaks_no_rule(case: str) -> None:
    conversation = read(PAIRED[case][0])
    assert validate(conversation) == ()
    assert prepare(conversation, Policy()).conversation.turns == conversation.turns


def test_an_id_that_looks_made_is_no_duplicate() -> None:
    assert validate(read(PAIRED["an id of the client's that looks made"][0])) == ()


def test_a_function_call_beside_tool_calls_is_a_call_of_its_own_or_told_to_be_a_copy() -> None:
    both = beside("a", "f", {"name": "g", "arguments": '{"n": 1}'})
    prepared = prepare(read([both, {"role": "tool", "tool_call_id": "a", "content": "x"}, answered("g")]), Policy())
    assert told(prepared) == [("CALL_FORMS_MIXED", 0, None)]
    assert [call.name for call in prepared.conversation.turns[0].calls] == ["f", "g"]
    assert "Called g with args" in flatten(prepared.conversation, Policy()).text
    copied = beside("a", "f", {"name": "f", "arguments": "{}"})
    prepared = prepare(read([copied, {"role": "tool", "tool_call_id": "a", "content": "x"}]), Policy())
    assert told(prepared) == [("CALL_FORMS_MIXED", 0, None)]
    assert [call.name for call in prepared.conversation.turns[0].calls] == ["f"]


@pytest.mark.parametrize("call_id", [123, [123], {"id": 123}, True, 1.5, " "])
def test_an_id_that_is_no_text_is_a_missing_one_told_once(call_id: Json) -> None:
    messages: list[Json] = [user(), calling("a"), {"role": "tool", "tool_call_id": call_id, "content": "the result"}]
    prepared = prepare(read(messages), Policy())
    assert told(prepared) == [("TOOL_ID_MISSING", 2, "a")]
    (_, _, result) = prepared.conversation.turns
    assert (result.results[0].call_id, result.results[0].text) == ("a", "the result")
    assert [one.rule for one in validate(read(messages))] == ["TOOL_ID_MISSING"]


@pytest.mark.parametrize("call_id", [123, "123"])
def test_a_number_that_is_the_id_of_a_call_is_that_id(call_id: Json) -> None:
    tool: Json = {"role": "tool", "tool_call_id": 123, "content": "of 123"}
    body: Json = {"name": "f", "arguments": "{}"}
    calls: Json = [{"id": one, "type": "function", "function": body} for one in ("a", call_id)]
    messages: list[Json] = [
        {"role": "assistant", "tool_calls": calls},
        tool,
        {"role": "tool", "tool_call_id": "a", "content": "of a"},
    ]
    prepared = prepare(read(messages), Policy())
    answers = {result.call_id: result.text for turn in prepared.conversation.turns for result in turn.results}
    assert answers == {"a": "of a", "123": "of 123"}
    assert [rule for rule, index, _ in told(prepared) if index == 1] == ["TOOL_ID_MISSING"]


# An id as the dialect makes it, told as one.
MADE = re.compile(r"'call_function_[0-9]+_*'")


@st.composite
def histories(draw: st.DrawFn) -> list[Json]:
    """Deprecated calls and results in any order, among modern ones and others. Every text is a marker of its own."""
    numbers = count()
    made: list[Json] = [user("<first>")]
    for kind in draw(st.lists(st.sampled_from("ccffffutb"), max_size=14)):
        name = draw(st.sampled_from("fg"))
        text = f"<{next(numbers)}>"
        ids = draw(st.sampled_from(["a", "b", "call_function_0", "call_function_1_", 1, None]))
        both: Json = {"role": "assistant", "tool_calls": [], "function_call": {"name": name, "arguments": text}}
        messages: dict[str, Json] = {
            "c": called(name),
            "f": answered(draw(st.sampled_from([name, "h", None])), text),
            "u": user(text),
            "t": {"role": "tool", "tool_call_id": ids, "content": text},
            "b": draw(st.sampled_from([calling(ids, name), both])),
        }
        made.append(messages[kind])
    return made


@given(histories())
def test_any_history_with_deprecated_calls_keeps_every_rule_afterwards(messages: list[Json]) -> None:
    conversation = read(messages)
    unlimited = Policy(max_tool_results=None, max_history_messages=None)
    prepared = prepare(conversation, unlimited)
    turns = prepared.conversation.turns
    assert validate(prepared.conversation) == ()
    assert prepare(prepared.conversation, unlimited).conversation == prepared.conversation
    # A function message answers a call of its own name, or nothing.
    calls = {call.id: call.name for turn in turns for call in turn.calls}
    for turn in turns:
        if turn.index is not None and turn.role == "tool" and turn.name is not None:
            assert [calls[result.call_id] for result in turn.results] == [turn.name]
    # What the client wrote is still there, and what it did not write is not told as its own.
    said = str([turn.blocks for turn in turns]) + words(prepared.notices)
    dropped = [one.index for one in prepared.notices if one.rule == "TOOL_ID_DUPLICATE"]
    for index, message in enumerate(messages):
        assert isinstance(message, dict)
        assert message["role"] == "assistant" or index in dropped or str(message["content"]) in said
    repaired = [one for one in prepared.notices if one.stage == "repair"]
    given_back = [(one.detail, one.tool_call_id) for one in validate(conversation)]
    given_back += [(one.detail, one.tool_call_id) for one in repaired]
    for made in MADE.findall(str(given_back)):
        assert made in str(messages)
