"""Tests the laws for every format and every text, with any cut."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.core.errors import BackendTruncated, InvalidToolCall
from gateway.core.events import Event, ToolCallEnd, ToolCallStart
from gateway.tool_calls.parsers.formats import FORMATS
from tests.tool_calls.parsers.parsing import TOOLS, cut, obeys_grammar, parse, parser, texts, without_blanks

NAMES = st.sampled_from(sorted(FORMATS))
INDENTS = st.sampled_from([None, 0, 2])
CUTS = st.lists(st.integers(0, 400), max_size=12)

# What a text is made of here: everything that means something to a parser, whole and in parts, and what does not.
PIECES = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<tool_cal", "<function=", "get_weather", ">", "<parameter=", "city", "days"),
        *("</parameter>", "</function>", "<parameter=city>", "<function=write>", "```json", "```tool_call", "```"),
        *("Action:", "Action Input:", "Action: write", "Observation:", "{", "}", "[", "]", '"', ":", ",", "\\", "`"),
        *('{"name": "write"', '"arguments": {', '"arguments": "{}"', '{"name":"get_weather","arguments":{}}', '"name"'),
        *('<tool_call>{"name": "write", "arguments": {"text": "', '"args": null', '"a": 1.5e3', "tru", "true", "null"),
        *(" ", "\n", "\r\n", "\t", "Well.", "🌦", "\u2028", "\x00", "'", '{"name": "other"', "12", "\\u12", "\\ud83d"),
    ]
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
# Arguments as the schema of get_weather has them, so that formats without JSON types can restore them.
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "city": st.text(max_size=30) | st.lists(PIECES, max_size=5).map("".join),
        "days": st.integers(),
        "wind": st.booleans(),
        "place": st.dictionaries(st.text(max_size=8), VALUES, max_size=3),
    },
)


@st.composite
def mangled_calls(draw: st.DrawFn) -> str:
    """Two calls in one format or two, with a part replaced by something else."""
    written = [
        FORMATS[draw(NAMES)].render_call("get_weather", json.dumps(draw(ARGUMENTS), indent=draw(INDENTS)))
        for _ in range(2)
    ]
    text = draw(st.sampled_from(["", "\n", "Well."])).join(written)
    begin = draw(st.integers(0, len(text)))
    end = begin + draw(st.integers(0, 12))
    return text[:begin] + "".join(draw(st.lists(PIECES, max_size=2))) + text[end:]


SOUP = st.lists(PIECES, max_size=16).map("".join) | st.text(max_size=40) | mangled_calls()
PROSE = st.sampled_from(["Well.", "I look.", "So: <tool_cal", "a < b", "é🌦", "`x`"])


@given(NAMES, SOUP, CUTS)
def test_events_do_not_depend_on_the_cuts(name: str, text: str, cuts: list[int]) -> None:
    whole = parse([text], name)
    assert parse(cut(text, cuts), name) == whole
    assert parse(text, name) == whole


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(ARGUMENTS, INDENTS, st.booleans(), st.booleans(), CUTS)
def test_a_rendered_call_is_read_as_it_was(
    name: str, arguments: dict[str, Json], indent: int | None, ascii_only: bool, sort: bool, cuts: list[int]
) -> None:
    written = json.dumps(arguments, ensure_ascii=ascii_only, indent=indent, sort_keys=sort)
    parsed = parse(cut(FORMATS[name].render_call("get_weather", written), cuts), name)
    (call,) = parsed.calls
    assert call.name == "get_weather" and json.loads(call.arguments) == arguments
    assert (parsed.text, parsed.error) == ("", None)


@given(NAMES, SOUP, CUTS)
def test_a_text_without_calls_comes_out_as_it_went_in(name: str, text: str, cuts: list[int]) -> None:
    parsed = parse(cut(text, cuts), name)
    assume(not parsed.calls)
    assert parsed.text == text if parsed.error is None else text.startswith(parsed.text)


@given(NAMES, st.lists(PROSE | ARGUMENTS, max_size=6), CUTS)
def test_nothing_but_the_calls_and_the_blanks_around_them_leaves_the_text(
    name: str, parts: list[str | dict[str, Json]], cuts: list[int]
) -> None:
    written = [
        part if isinstance(part, str) else FORMATS[name].render_call("get_weather", json.dumps(part)) for part in parts
    ]
    parsed = parse(cut("\n".join(written), cuts), name)
    prose = "".join(part for part in parts if isinstance(part, str))
    assert without_blanks(parsed.text) == without_blanks(prose)
    assert [json.loads(call.arguments) for call in parsed.calls] == [p for p in parts if isinstance(p, dict)]


@given(NAMES, SOUP, CUTS)
def test_a_call_that_ends_has_valid_arguments_and_a_tool_that_was_offered(
    name: str, text: str, cuts: list[int]
) -> None:
    parsed = parse(cut(text, cuts), name)
    ended = [event.index for event in parsed.events if isinstance(event, ToolCallEnd)]
    started = [event for event in parsed.events if isinstance(event, ToolCallStart)]
    assert [event.index for event in started] == list(range(len(started)))
    assert [event.id for event in started] == [f"call_{index}" for index in range(len(started))]
    assert {event.name for event in started} <= {tool.name for tool in TOOLS}
    for index in ended:
        assert isinstance(json.loads(parsed.calls[index].arguments), dict)
    if parsed.error is None:
        obeys_grammar(parsed.events)
    else:
        assert parsed.error[0] in (BackendTruncated, InvalidToolCall)
        assert len(started) - len(ended) in (0, 1), "one call fails, which may not have been shown yet"


@given(NAMES, SOUP, CUTS)
def test_an_answer_that_reached_its_length_never_fails_at_its_end(name: str, text: str, cuts: list[int]) -> None:
    parsed = parse(cut(text, cuts), name, "length")
    if parsed.error is None:
        obeys_grammar(parsed.events)
    else:
        assert parsed.error[0] is InvalidToolCall


@given(NAMES, st.lists(st.sampled_from("<>tol_cafun=`jsAi:. \n"), max_size=40).map("".join))
def test_no_more_than_the_beginning_of_a_mark_is_held_back(name: str, text: str) -> None:
    parsing, longest = parser(name), {"qwen_xml": 11, "hermes_json": 11, "react": 7}.get(name, 12)
    text = f"Well. {text}"
    events: list[Event] = []
    for fed, character in enumerate(text, 1):
        events += parsing.feed(character)
        assume(name != "react" or "Action:" not in text)
        assume("```json" not in text and "<function=" not in text and "<tool_call>" not in text)
        assert fed - texts(events) < longest
    events += parsing.close()
    assert texts(events) == len(text)


@settings(max_examples=20)
@given(NAMES, ARGUMENTS)
def test_a_call_cut_short_is_an_error_once_it_has_begun_and_text_before(name: str, arguments: dict[str, Json]) -> None:
    written = FORMATS[name].render_call("get_weather", json.dumps(arguments)).rstrip("\n")
    for end in range(len(written)):
        parsed = parse([written[:end]], name)
        begun = any(isinstance(event, ToolCallStart) for event in parsed.events)
        ended = any(isinstance(event, ToolCallEnd) for event in parsed.events)
        if begun and not ended:
            assert parsed.error is not None and parsed.error[0] is BackendTruncated
        elif parsed.error is not None:
            assert parsed.error[0] is BackendTruncated and parsed.text == ""
        elif not begun:
            assert parsed.text == written[:end]
