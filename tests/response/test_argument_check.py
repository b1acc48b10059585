"""The arguments of a call reach the client as one JSON value: what is none fails the response, what follows one is left
out, and a value that is no object is reported to a client that reads objects; however the pieces are cut."""

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    Reason,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy, WrapperTool
from gateway.exchange import Exchange
from tests.scripted import ScriptedAdapter

CUT = '{"path":"a.py","content":"def'
OFF = Policy(repair="off")
BROKEN = (CUT, "{", '{"a":1', '["a"', '{"a":1]', "no", "{'a':1}", '"half', '{"a":"\\')


def answer(*pieces: str, reason: Reason = "tool_calls") -> list[list[Event]]:
    """A response with one call; each list is what one piece of the body holds."""
    deltas: list[list[Event]] = [[ToolCallDelta(3, piece)] for piece in pieces]
    return [
        [ResponseStart(), ReasoningDelta("hm"), TextDelta("x")],
        [ToolCallStart(3, "k", "f")],
        *deltas,
        [ToolCallEnd(3)],
        [Finish(reason)],
    ]


def events_of(
    script: list[list[Event]], *, object_arguments: bool | frozenset[str], policy: Policy | None = None
) -> list[Event]:
    asked = Conversation((Turn("user", (Text("hi"),)),), stream=True, object_arguments=object_arguments)
    exchange = Exchange(ScriptedAdapter(*script), asked, policy or Policy())
    return [event for _ in script for event in exchange.feed(b".")]


def arguments_of(events: Iterable[Event]) -> str:
    return "".join(event.arguments for event in events if isinstance(event, ToolCallDelta))


def told(events: Iterable[Event]) -> list[tuple[str, str, str | None]]:
    return [(one.action, one.rule, one.tool_call_id) for one in events if isinstance(one, Notice)]


def failed(script: list[list[Event]], *, object_arguments: bool, policy: Policy | None = None) -> InvalidToolCall:
    with pytest.raises(InvalidToolCall) as caught:
        events_of(script, object_arguments=object_arguments, policy=policy)
    return caught.value


@pytest.mark.parametrize("functions", [True, frozenset("f")], ids=["all", "one"])
@pytest.mark.parametrize(
    ("pieces", "reported"),
    [
        (('{"n":', "1}"), False),
        ((), False),
        ((" ", "\n"), False),
        (("[1", "]"), True),
        (("7",), True),
        (("null",), True),
        (('"{}"',), True),
    ],
)
def test_the_notice_stands_behind_the_end_of_the_call(
    pieces: tuple[str, ...], reported: bool, functions: bool | frozenset[str]
) -> None:
    script = answer(*pieces)
    plain = [event for events in script for event in events]
    got = events_of(script, object_arguments=functions)
    notices = [event for event in got if isinstance(event, Notice)]
    assert [event for event in got if event not in notices] == plain
    assert [(one.action, one.rule, one.tool_call_id) for one in notices] == reported * [
        ("changed", "ARGUMENTS_AS_TEXT", "k")
    ]
    if reported:
        assert got[got.index(ToolCallEnd(3)) + 1] is notices[0]


@pytest.mark.parametrize("functions", [False, frozenset("g")], ids=["none", "another"])
def test_a_client_that_reads_text_gets_no_notice(functions: bool | frozenset[str]) -> None:
    script = answer("[", "1]")
    assert events_of(script, object_arguments=functions) == [event for events in script for event in events]


def test_calls_that_interleave_are_told_apart() -> None:
    script: list[list[Event]] = [
        [ResponseStart(), ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "f")],
        [ToolCallDelta(1, "["), ToolCallDelta(0, "{")],
        [ToolCallDelta(0, "}"), ToolCallDelta(1, "]")],
        [ToolCallEnd(0), ToolCallEnd(1), Finish("tool_calls")],
    ]
    got = events_of(script, object_arguments=True)
    assert [event.tool_call_id for event in got if isinstance(event, Notice)] == ["b"]


@pytest.mark.parametrize("objects", [True, False], ids=["objects", "text"])
@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
@pytest.mark.parametrize("written", BROKEN)
def test_a_call_without_a_json_value_fails_the_response_at_its_finish(
    written: str, reason: Reason, objects: bool
) -> None:
    script = answer(*written, reason=reason)
    *begun, _, _ = script
    shown = events_of(begun, object_arguments=objects)
    assert arguments_of(shown) == written
    error = failed(script, object_arguments=objects)
    assert (error.status, error.code) == (502, "upstream_invalid_tool_call")
    assert error.events == ()
    assert told(error.notices) == [("failed", "ARGUMENTS_BROKEN", "k")]


def test_no_part_of_a_broken_calls_end_reaches_the_client() -> None:
    script = answer(CUT)
    asked = Conversation((Turn("user", (Text("hi"),)),), stream=True)
    exchange = Exchange(ScriptedAdapter(*script), asked, Policy())
    shown = [event for _ in script[:-1] for event in exchange.feed(b".")]
    assert ToolCallEnd(3) not in shown
    whole = Exchange(ScriptedAdapter([event for events in script for event in events]), asked, Policy())
    with pytest.raises(InvalidToolCall) as caught:
        whole.feed(b".")
    assert ToolCallEnd(3) not in caught.value.events
    assert arguments_of(caught.value.events) == CUT


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize("objects", [True, False], ids=["objects", "text"])
def test_a_response_that_says_it_was_cut_ends_with_its_cut_call(reason: Reason, objects: bool) -> None:
    got = events_of(answer(CUT, reason=reason), object_arguments=objects)
    assert told(got) == objects * [("changed", "ARGUMENTS_AS_TEXT", "k")]
    plain = [event for event in got if not isinstance(event, Notice)]
    assert plain == [event for events in answer(CUT, reason=reason) for event in events]


@pytest.mark.parametrize("objects", [True, False], ids=["objects", "text"])
@pytest.mark.parametrize("rest", ["{}", '{"b":2}', "[1]", " oops", "}", "]", "<|end|>", '\n\n"x"', "\\"])
@pytest.mark.parametrize("value", ['{"a":1}', '{"a":"}{\\"]"}', "{}", ' {"a":{"b":[[]]}}', '{"a":"\\\\"}'])
def test_what_follows_the_first_value_is_left_out_and_told(value: str, rest: str, objects: bool) -> None:
    for pieces in ([value + rest], [value, rest], list(value + rest)):
        got = events_of(answer(*pieces), object_arguments=objects)
        assert arguments_of(got).rstrip() == value
        assert told(got) == [("dropped", "ARGUMENTS_EXTENDED", "k")]


@pytest.mark.parametrize("objects", [True, False], ids=["objects", "text"])
def test_white_space_around_a_value_is_kept_and_not_told(objects: bool) -> None:
    pieces = ("\n", '{"a":', "1}", " ", "\n")
    got = events_of(answer(*pieces), object_arguments=objects)
    assert (arguments_of(got), told(got)) == ("".join(pieces), [])


@given(
    value=st.recursive(
        st.one_of(st.none(), st.integers(), st.text()),
        lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner),
    ),
    cuts=st.lists(st.integers(0, 200)),
)
def test_a_value_passes_however_it_is_cut(value: object, cuts: list[int]) -> None:
    written = json.dumps({"a": value})
    places = sorted({0, len(written), *[cut % len(written) for cut in cuts]})
    pieces = [written[start:end] for start, end in pairwise(places)]
    got = events_of(answer(*pieces), object_arguments=True)
    assert (arguments_of(got), told(got)) == (written, [])
    assert failed(answer(written[:-1]), object_arguments=True).code == "upstream_invalid_tool_call"


def test_deep_arguments_are_json() -> None:
    written = '{"a":' + 100 * "[" + 100 * "]" + "}"
    assert told(events_of(answer(written), object_arguments=False)) == []
    assert told(events_of(answer(written), object_arguments=True)) == [("changed", "ARGUMENTS_AS_TEXT", "k")]


def test_free_text_of_a_custom_tool_is_no_json() -> None:
    script = answer("*** Begin Patch {")
    script[1] = [ToolCallStart(3, "k", "f", extra={"type": "custom"})]
    assert events_of(script, object_arguments=False) == [event for events in script for event in events]


@pytest.mark.parametrize("written", [*BROKEN, '{"a":1}{"b":2}', '{"a":1} oops'])
def test_without_repair_a_client_that_reads_text_gets_it_as_it_came_and_is_told(written: str) -> None:
    got = events_of(answer(*written), object_arguments=False, policy=OFF)
    assert arguments_of(got) == written
    assert told(got) == [("seen", "ARGUMENTS_BROKEN", "k")]


def test_without_repair_a_client_that_reads_objects_gets_no_broken_call() -> None:
    assert failed(answer(CUT), object_arguments=True, policy=OFF).code == "upstream_invalid_tool_call"
    got = events_of(answer('{"a":1}{}'), object_arguments=True, policy=OFF)
    assert (arguments_of(got), told(got)) == ('{"a":1}', [("dropped", "ARGUMENTS_EXTENDED", "k")])


def test_what_follows_the_value_of_a_wrapped_call_is_left_out_and_told() -> None:
    script = answer('{"name":"f","args":{"a":1}}{"name":"f"}')
    script[1] = [ToolCallStart(3, "k", "w")]
    policy = Policy(wrapper_tools={"w": WrapperTool()})
    got = events_of(script, object_arguments=False, policy=policy)
    assert json.loads(arguments_of(got)) == {"a": 1}
    assert [rule for _, rule, _ in told(got)] == ["ARGUMENTS_EXTENDED", "ENVELOPE_OPENED"]
