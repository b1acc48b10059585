"""The client receives the real call and no part of its wrapper; all other events pass at once."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.grammar import Grammar
from gateway.core.notices import Notice
from gateway.core.policy import Policy, WrapperTool
from gateway.tool_calls.unwrap import Unwrapper

ENVELOPE = '{"name": "Execute", "args": {"command": "cat config.json"}}'
PASS = Policy(wrapper_failure="pass")


def start(index: int = 0, name: str = "call_mcp_tool", wrapped: bool = False) -> ToolCallStart:
    return ToolCallStart(index, f"toolu_{index}", name, wrapped)


def call(index: int, arguments: str, name: str = "call_mcp_tool") -> list[Event]:
    return [start(index, name), ToolCallDelta(index, arguments), ToolCallEnd(index)]


def transformed(index: int, name: str, envelope: str = "call_mcp_tool") -> Notice:
    detail = f"[MCP Gateway] Transformed {envelope} -> {name}"
    return Notice("unwrap", "changed", "ENVELOPE_OPENED", detail, None, f"toolu_{index}", "info")


def unwrapper(policy: Policy | None = None, *declared: str) -> Unwrapper:
    return Unwrapper(policy or Policy(), frozenset(declared))


def test_an_enveloped_call_becomes_the_real_one_with_its_id() -> None:
    assert unwrapper().feed(call(0, ENVELOPE)) == [
        transformed(0, "Execute"),
        ToolCallStart(0, "toolu_0", "Execute"),
        ToolCallDelta(0, '{"command": "cat config.json"}'),
        ToolCallEnd(0),
    ]


def test_unknown_fields_of_the_call_are_kept() -> None:
    opened = unwrapper().feed([ToolCallStart(0, "a", "call_mcp_tool", True, {"sig": "x"}), *call(0, ENVELOPE)[1:]])
    assert opened[1] == ToolCallStart(0, "a", "Execute", False, {"sig": "x"})


def test_nothing_of_the_envelope_is_seen_before_its_end() -> None:
    machine = unwrapper()
    assert machine.feed([start()]) == []
    for character in ENVELOPE:
        assert machine.feed([ToolCallDelta(0, character)]) == []
    assert machine.feed([ToolCallEnd(0)]) == unwrapper().feed(call(0, ENVELOPE))


def test_other_events_are_not_delayed_by_a_held_call() -> None:
    machine = unwrapper()
    machine.feed([start()])
    passing: list[Event] = [TextDelta("a"), ReasoningDelta("b"), UsageReport(1, 1, 2), transformed(9, "x")]
    for event in passing:
        assert machine.feed([event]) == [event]


def test_interleaved_calls_stay_apart() -> None:
    machine = unwrapper()
    first, second = '{"name": "a", "args": {"n": 1}}', '{"name": "b", "args": {"n": 2}}'
    assert machine.feed([start(0), start(1)]) == []
    for left, right in zip(first, second, strict=True):
        assert machine.feed([ToolCallDelta(0, left), ToolCallDelta(1, right)]) == []
    assert machine.feed([ToolCallEnd(1)]) == [transformed(1, "b"), *call(1, '{"n": 2}', "b")]
    assert machine.feed([ToolCallEnd(0)]) == [transformed(0, "a"), *call(0, '{"n": 1}', "a")]


def test_a_real_call_streams_through_beside_an_enveloped_one() -> None:
    machine = unwrapper()
    machine.feed([start(0)])
    for event in call(1, '{"n": 2}', "b"):
        assert machine.feed([event]) == [event]
    assert machine.feed([ToolCallDelta(0, ENVELOPE), ToolCallEnd(0)])[1] == ToolCallStart(0, "toolu_0", "Execute")


def test_calls_of_other_names_are_untouched() -> None:
    events = call(0, '{"name": "x", "args": {}}', "Execute")
    assert unwrapper().feed(events) == events


def test_a_tool_the_client_declared_is_no_envelope_by_name_alone() -> None:
    assert unwrapper(None, "call_mcp_tool").feed(call(0, ENVELOPE)) == call(0, ENVELOPE)


def test_the_wire_knows_better_than_the_name() -> None:
    for name, declared in (("call_mcp_tool", "call_mcp_tool"), ("wrapper", "wrapper"), ("wrapper", "other")):
        opened = unwrapper(None, declared).feed([start(0, name, wrapped=True), *call(0, ENVELOPE)[1:]])
        assert opened == [transformed(0, "Execute", name), *call(0, '{"command": "cat config.json"}', "Execute")]


def test_envelopes_are_those_of_the_policy() -> None:
    policy = Policy(wrapper_tools={"use_tool": WrapperTool(("tool",), ("input",))})
    assert unwrapper(policy).feed(call(0, ENVELOPE)) == call(0, ENVELOPE)
    opened = unwrapper(policy).feed(call(0, '{"tool": "f", "input": {"n": 1}}', "use_tool"))
    assert opened == [transformed(0, "f", "use_tool"), *call(0, '{"n": 1}', "f")]


def test_a_broken_envelope_is_an_error_that_shows_no_content() -> None:
    with pytest.raises(InvalidToolCall) as caught:
        unwrapper().feed(call(0, '{"nam": "secret"}'))
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_tool_call")
    assert [notice.detail for notice in caught.value.notices] == [
        "[MCP Gateway] Failed to transform: the name is missing"
    ]
    assert caught.value.notices[0].level == "error"
    assert caught.value.notices[0].tool_call_id == "toolu_0"
    for said in (caught.value.message, caught.value.notices[0].detail):
        assert "secret" not in said
        assert "call_mcp_tool" not in said


@pytest.mark.parametrize("arguments", ["", "{}", "[1]", '{"name": "f", "args": [1]}', '{"name": "f"'])
def test_a_broken_envelope_passes_as_it_came_when_the_policy_says_so(arguments: str) -> None:
    deltas = [ToolCallDelta(0, part) for part in arguments]
    shown = unwrapper(PASS).feed([start(), *deltas, ToolCallEnd(0), TextDelta("on")])
    notice = shown.pop(0)
    assert isinstance(notice, Notice)
    assert notice.detail.startswith("[MCP Gateway] Failed to transform: ")
    joined: list[Event] = [ToolCallDelta(0, arguments)] if arguments else []
    assert shown == [start(), *joined, ToolCallEnd(0), TextDelta("on")]


def test_a_call_that_the_wire_never_ended_is_not_lost() -> None:
    machine = unwrapper()
    machine.feed([start(), ToolCallDelta(0, ENVELOPE)])
    shown = machine.feed([Finish("tool_calls")])
    assert shown == [*unwrapper().feed(call(0, ENVELOPE)), Finish("tool_calls")]
    machine.feed([start(1), ToolCallDelta(1, ENVELOPE[:-1])])
    with pytest.raises(InvalidToolCall):
        machine.feed([Finish("tool_calls")])


def test_memory_is_bounded_over_all_held_calls() -> None:
    machine = Unwrapper(Policy(), frozenset(), max_held=100)
    machine.feed([start(0), start(1), ToolCallDelta(0, "x" * 50), ToolCallDelta(1, "x" * 50)])
    with pytest.raises(InvalidToolCall, match="too long"):
        machine.feed([ToolCallDelta(1, "x")])


def test_a_call_too_long_to_hold_passes_as_it_comes_when_the_policy_says_so() -> None:
    machine = Unwrapper(PASS, frozenset(), max_held=10)
    shown = machine.feed([start(), ToolCallDelta(0, "x" * 10), ToolCallDelta(0, "y")])
    assert shown[1:] == [start(), ToolCallDelta(0, "x" * 10 + "y")]
    assert machine.feed([ToolCallDelta(0, "z"), ToolCallEnd(0)]) == [ToolCallDelta(0, "z"), ToolCallEnd(0)]
    assert machine.feed([start(1), ToolCallDelta(1, "x" * 10)]) == []


def test_room_is_given_back_with_every_opened_call() -> None:
    machine = Unwrapper(Policy(), frozenset(), max_held=len(ENVELOPE))
    for index in range(5):
        assert transformed(index, "Execute") in machine.feed(call(index, ENVELOPE))


def test_the_events_handed_in_are_not_changed() -> None:
    events = call(0, ENVELOPE)
    unwrapper().feed(events)
    assert events == call(0, ENVELOPE)


@st.composite
def responses(draw: st.DrawFn) -> tuple[list[Event], list[tuple[str, str, bool]]]:
    """Interleaved calls, cut anywhere, with text between them; and what each call really is."""
    calls = [
        (f"tool_{index}", json.dumps({"n": draw(st.integers()), "t": draw(st.text(max_size=8))}), draw(st.booleans()))
        for index in range(draw(st.integers(0, 4)))
    ]
    queues: list[list[Event]] = []
    for index, (name, arguments, wrapped) in enumerate(calls):
        text = f'{{"name": "{name}", "args": {arguments}}}' if wrapped else arguments
        cut = draw(st.integers(1, len(text) - 1))
        shown = "call_mcp_tool" if wrapped else name
        queues.append(
            [
                start(index, shown),
                ToolCallDelta(index, text[:cut]),
                ToolCallDelta(index, text[cut:]),
                ToolCallEnd(index),
            ]
        )
    queues.append([TextDelta(word) for word in draw(st.lists(st.text(min_size=1, max_size=3), max_size=4))])
    events: list[Event] = [ResponseStart()]
    while waiting := [queue for queue in queues if queue]:
        events.append(draw(st.sampled_from(waiting)).pop(0))
    return [*events, Finish("stop")], calls


@given(responses(), st.integers(1, 5))
def test_law_every_call_arrives_whole_in_legal_order_without_its_envelope(
    response: tuple[list[Event], list[tuple[str, str, bool]]], size: int
) -> None:
    events, calls = response
    machine = unwrapper()
    shown = [event for at in range(0, len(events), size) for event in machine.feed(events[at : at + size])]
    grammar = Grammar()
    grammar.check(shown)
    grammar.close()
    names = {event.index: event.name for event in shown if isinstance(event, ToolCallStart)}
    arguments = dict.fromkeys(names, "")
    for event in shown:
        if isinstance(event, ToolCallDelta):
            arguments[event.index] += event.arguments
    assert names == {index: name for index, (name, _, _) in enumerate(calls)}
    assert arguments == {index: text for index, (_, text, _) in enumerate(calls)}
    assert [event for event in shown if isinstance(event, TextDelta)] == [e for e in events if isinstance(e, TextDelta)]
    seen = msgspec.json.encode([event for event in shown if not isinstance(event, Notice)])
    assert b"call_mcp_tool" not in seen


def test_fields_of_an_envelope_that_nobody_declared_are_told() -> None:
    fields = "".join(f', "f{number}": 1' for number in range(20))
    first, told, *made = unwrapper().feed(call(0, f'{{"name": "f", "args": {{"n": 2}}{fields}}}'))
    assert (first, made) == (transformed(0, "f"), call(0, '{"n": 2}', "f"))
    assert isinstance(told, Notice)
    assert (told.rule, told.action, told.level, told.tool_call_id) == (
        "ENVELOPE_FIELD_DROPPED",
        "dropped",
        "warning",
        "toolu_0",
    )
    assert told.detail.startswith("call_mcp_tool had 20 unused fields, which were dropped: 'f0', 'f1', ")


KEYS = st.sampled_from(["args", "arguments", "parameters", "input", "kwargs", "command", "server", "id", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", " ", "null", "{}", '{"n": 1}', "ls"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abn"), inner, max_size=2),
    max_leaves=4,
)
ARGS_KEYS = ("args", "arguments", "parameters", "input")


def says_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip() in ("", "null"))


def is_empty(value: object) -> bool:
    return value == {} or value == "{}"


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.integers(1, 9), st.sampled_from([Policy(), PASS]))
def test_law_an_envelope_is_its_arguments_or_fails_or_tells_what_it_leaves_out(
    fields: dict[str, object], size: int, policy: Policy
) -> None:
    text = json.dumps({"name": "Execute", **fields})
    pieces: list[Event] = [ToolCallDelta(0, text[at : at + size]) for at in range(0, len(text), size)]
    machine = unwrapper(policy)
    try:
        shown = [event for one in (start(), *pieces, ToolCallEnd(0)) for event in machine.feed([one])]
    except InvalidToolCall:
        assert policy.wrapper_failure == "error"
        return
    notices = [event for event in shown if isinstance(event, Notice)]
    name = next(event.name for event in shown if isinstance(event, ToolCallStart))
    arguments = "".join(event.arguments for event in shown if isinstance(event, ToolCallDelta))
    if name == "call_mcp_tool":
        assert (policy, arguments, [notice.rule for notice in notices]) == (PASS, text, ["ENVELOPE_BROKEN"])
        return
    held = [key for key in ARGS_KEYS if key in fields and not says_nothing(fields[key])]
    used = next((key for key in held if not is_empty(fields[key])), held[0] if held else None)
    meant = {} if used is None else fields[used]
    assert json.loads(arguments) == (json.loads(meant) if isinstance(meant, str) else meant)
    empty = {key for key in ARGS_KEYS if key in fields and (says_nothing(fields[key]) or is_empty(fields[key]))}
    unused = [key for key in fields if key != used and key not in empty]
    if used is None:
        assert all(fields[key] is None for key in unused), "arguments were invented"
    told = [notice.detail for notice in notices if notice.rule == "ENVELOPE_FIELD_DROPPED"]
    assert len(told) == bool(unused)
    assert all(repr(key) in told[0] for key in unused)
