"""The calls of an answer, of functions and of every other tool that the client runs."""

from collections.abc import Sequence

import pytest

from gateway.core.events import Finish, ToolCallDelta, ToolCallEnd, ToolCallStart
from tests.adapters.openai_responses.backend.reading import OWN, START, STOP, decoded, failure, rules
from tests.adapters.openai_responses.backend.wires import (
    CUSTOM,
    WireEvent,
    added,
    call,
    call_events,
    delta,
    done,
    ended,
    message,
    streamed,
    whole,
)


def test_parallel_calls_may_interleave() -> None:
    f, g = call_events(0, '{"a":', "1}"), call_events(1, "{", "}", name="g", call_id="b")
    wire = streamed(f[0], g[0], f[1], g[1], f[2], g[2], *g[3:], *f[3:])
    assert decoded(wire) == [
        START,
        ToolCallStart(0, "a", "f"),
        ToolCallStart(1, "b", "g"),
        ToolCallDelta(0, '{"a":'),
        ToolCallDelta(1, "{"),
        ToolCallDelta(0, "1}"),
        ToolCallDelta(1, "}"),
        ToolCallEnd(1),
        ToolCallEnd(0),
        STOP,
    ]


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        (call_events(0, '{"a":', "1}"), '{"a":1}'),
        ([added(0, call()), done(0, call('{"a":1}'))], '{"a":1}'),
        ([added(0, call()), done(0, call())], "{}"),
        ([added(0, call(name=None)), done(0, call('{"a":1}'))], '{"a":1}'),
        ([added(0, call()), delta("function_call_arguments", 0, '{"a"'), done(0, call('{"a":1}'))], '{"a":1}'),
        ([added(0, call()), delta("function_call_arguments", 0, '{"a": 1}'), done(0, call('{"a":1}'))], '{"a": 1}'),
    ],
)
def test_arguments_are_complete_however_they_arrive(events: Sequence[WireEvent], arguments: str) -> None:
    assert decoded(streamed(*events)) == [
        START,
        ToolCallStart(0, "a", "f"),
        ToolCallDelta(0, arguments),
        ToolCallEnd(0),
        STOP,
    ]


@pytest.mark.parametrize(
    "events",
    [
        [added(0, call()), delta("function_call_arguments", 0, "{}"), done(0, call('{"a":1}'))],
        [added(0, call()), delta("function_call_arguments", 0, "{"), done(0, call("["))],
        [added(0, call(name=None)), done(0, call(name=None))],
        [added(0, call())],
        [added(0, message()), added(1, call())],
    ],
)
def test_a_call_of_which_none_can_be_made_is_an_error(events: Sequence[WireEvent]) -> None:
    error = failure(streamed(*events))
    assert error is not None and (error.status, error.code) == (502, "upstream_invalid_tool_call")


@pytest.mark.parametrize(
    ("ids", "made", "told"),
    [
        (("a", "a"), ("a", "a_1_1"), ["CALL_ID_RENAMED"]),
        ((None, ""), ("call_1_0", "call_1_1"), ["CALL_ID_ADDED", "CALL_ID_ADDED"]),
    ],
)
def test_every_call_has_an_id_of_its_own(
    ids: tuple[str | None, str | None], made: tuple[str, str], told: list[str]
) -> None:
    wire = whole(*(call("{}", call_id=call_id) for call_id in ids))
    assert tuple(event.id for event in decoded(wire) if isinstance(event, ToolCallStart)) == made
    assert rules(wire) == told


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        ({"type": "custom_tool_call", "name": "run", "input": 'say "hi"\n'}, "run", r'{"input":"say \"hi\"\n"}'),
        ({"type": "custom_tool_call", "name": "run", "input": ""}, "run", '{"input":""}'),
        ({"type": "function_call", "name": "look", "namespace": "docs", "arguments": "{}"}, "docs__look", "{}"),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "local_shell", '{"command":["ls"]}'),
        ({"type": "shell_call", "action": {"commands": ["ls"]}}, "shell", '{"commands":["ls"]}'),
        ({"type": "apply_patch_call", "operation": {"type": "delete_file"}}, "apply_patch", '{"type":"delete_file"}'),
        ({"type": "tool_search_call", "arguments": {"query": "x"}}, "tool_search", '{"query":"x"}'),
    ],
)
def test_every_call_that_the_client_runs_is_one_of_a_function(item: WireEvent, name: str, arguments: str) -> None:
    begun = {key: "" if key in ("input", "arguments") else value for key, value in item.items()}
    for wire in (
        whole({**item, "call_id": "a"}),
        streamed(added(0, {**begun, "call_id": "a"}), done(0, {**item, "call_id": "a"})),
    ):
        assert decoded(wire) == [
            START,
            ToolCallStart(0, "a", name),
            ToolCallDelta(0, arguments),
            ToolCallEnd(0),
            STOP,
        ]
        # A client of the dialect reads the item itself, in a namespace that it does not offer as well.
        _, start, delta, end, _ = decoded(wire, OWN)
        assert isinstance(start, ToolCallStart) and start.name in (name, item.get("name"))
        said = start.extra[OWN]
        assert isinstance(said, dict) and "item" in said
        assert delta == ToolCallDelta(0, arguments) and isinstance(end, ToolCallEnd)


def test_the_input_of_a_custom_tool_grows_inside_its_object() -> None:
    item: WireEvent = {"type": "custom_tool_call", "name": "run", "call_id": "a", "input": ""}
    pieces = [delta("custom_tool_call_input", 0, text) for text in ('"', "ü", "\n")]
    wire = streamed(added(0, item), *pieces, done(0, {**item, "input": '"ü\n'}))
    assert ToolCallDelta(0, '{"input":"\\"ü\\n"}') in decoded(wire)


@pytest.mark.parametrize(
    ("begun", "piece", "arguments"),
    [
        (call(), None, ""),
        (call(), delta("function_call_arguments", 0, '{"a'), '{"a'),
        (CUSTOM, delta("custom_tool_call_input", 0, "b"), '{"input":"b'),
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_a_call_of_an_incomplete_response_is_not_completed(
    begun: WireEvent, piece: WireEvent | None, arguments: str, ends: bool
) -> None:
    end = [done(0, {**begun, "status": "incomplete"})] if ends else []
    last = ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
    read = decoded(streamed(added(0, begun), *([] if piece is None else [piece]), *end, last=last))
    assert "".join(event.arguments for event in read if isinstance(event, ToolCallDelta)) == arguments
    assert read[-2:] == [ToolCallEnd(0), Finish("length", "incomplete")]
