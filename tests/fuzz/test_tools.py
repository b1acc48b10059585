"""Law: whatever a model writes is text and calls in order, or a BackendError; however it is cut, and nothing else."""

import contextlib
import json
from collections.abc import Iterable
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import BackendError
from gateway.core.events import Event, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.policy import FlattenOptions, Policy, WrapperTool
from gateway.history.transcript.styles import STYLES
from gateway.testing.events import content
from gateway.testing.strategies import TOOLS
from gateway.tool_calls.parsers.formats import FORMATS
from gateway.tool_calls.unwrap import Unwrapper
from gateway.tool_calls.wrapper_tool import BrokenWrapper, unwrap_arguments
from tests.fuzz.strategies import TEXTS, WILD
from tests.history.transcript.parse import parse

MARKS: Final = (
    *("<tool_call>", "</tool_call>", "<tool_", "<function=f>", "<parameter=n>", "</parameter>", "</function>", "```"),
    *(
        "```json\n",
        "Action: f",
        "Action Input: ",
        "Observation:",
        "[TOOL_CALLS]",
        '{"name": "f", "arguments": {"n": 1}}',
    ),
    *(
        '{"name": "f", "arguments": ',
        '{"name": "nobody"}',
        "{",
        "}",
        "[",
        "]",
        '"',
        "\\",
        "\\u00",
        ":",
        ",",
        "\n",
        "  ",
    ),
    *("User: ", "Assistant: ", "Tool calls: ", "Called f with args: ", "Tool result (k0): "),
)
WRITTEN: Final = st.lists(st.sampled_from(MARKS) | TEXTS | WILD.map(json.dumps), max_size=10)


def _read(name: str, pieces: Iterable[str]) -> tuple[list[Event], list[Notice], str | None]:
    """Where a notice stands among the text depends on the cuts; that it comes does not."""
    parser = FORMATS[name].parser(TOOLS, "id_")
    events: list[Event] = []
    try:
        for piece in pieces:
            events += parser.feed(piece)
        events += parser.close()
    except BackendError as error:
        assert error.status >= 500
        events += error.take_events()
        return content(events), _notices([*events, *error.notices]), error.code
    return content(events), _notices(events), None


def _notices(events: Iterable[Event]) -> list[Notice]:
    return [event for event in events if isinstance(event, Notice)]


@given(pieces=WRITTEN, name=st.sampled_from(sorted(FORMATS)))
def test_any_text_is_text_and_calls_in_order_or_an_error(pieces: list[str], name: str) -> None:
    events, notices, code = _read(name, pieces)
    for cutting in (["".join(pieces)], "".join(pieces)):
        assert _read(name, cutting) == (events, notices, code)
    if code is not None:
        return
    open_calls: set[int] = set()
    for event in events:
        match event:
            case ToolCallStart():
                assert event.name in ("f", "g")
                open_calls.add(event.index)
            case ToolCallDelta() | TextDelta():
                assert isinstance(event, TextDelta) or event.index in open_calls
            case ToolCallEnd():
                open_calls.remove(event.index)
            case _:
                pass
    assert not open_calls


@given(
    text=WILD.map(json.dumps)
    | st.builds(lambda name, args: json.dumps({"name": name, "args": args}), WILD, WILD)
    | st.text(max_size=30)
)
def test_any_envelope_holds_a_call_or_is_broken(text: str) -> None:
    wrapper_tools = {"call_mcp_tool": WrapperTool(), "other": WrapperTool(("tool",), ("input", "args"))}
    try:
        opened = unwrap_arguments(text, wrapper_tools["call_mcp_tool"], wrapper_tools, {"f"})
    except BrokenWrapper as error:
        assert str(error)
    else:
        assert opened.name
        assert isinstance(json.loads(opened.arguments), dict)


POLICIES: Final = {"error": Policy(wrapper_failure="error"), "pass": Policy(wrapper_failure="pass")}


@given(pieces=st.lists(TEXTS | WILD.map(json.dumps), max_size=4), failure=st.sampled_from(sorted(POLICIES)))
def test_any_enveloped_arguments_are_unwrapped_released_or_refused(pieces: list[str], failure: str) -> None:
    unwrapper = Unwrapper(POLICIES[failure], frozenset({"f"}))
    begin = ToolCallStart(0, "k0", "call_mcp_tool", wrapped=True)
    deltas = [ToolCallDelta(0, piece) for piece in pieces]
    try:
        events = unwrapper.feed([begin, *deltas, ToolCallEnd(0)])
    except BackendError as error:
        assert failure == "error" and error.code == "upstream_invalid_tool_call"
    else:
        assert any(isinstance(event, ToolCallEnd) for event in events)


OPTIONS: Final = tuple(FlattenOptions(style) for style in STYLES)


@given(text=WRITTEN.map("".join), options=st.sampled_from(OPTIONS))
def test_any_text_is_parsed_as_flattened_or_refused(text: str, options: FlattenOptions) -> None:
    with contextlib.suppress(ValueError):
        parse(text, options)
