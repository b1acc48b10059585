"""Calls in the notation of a flattened history."""

import pytest

from gateway.core.policy import FlattenOptions, Labels
from gateway.history.transcript.sections import Called, Section
from gateway.history.transcript.styles import STYLES
from gateway.testing.events import fold
from gateway.tool_calls.parsers.formats import FORMATS
from gateway.tool_calls.parsers.transcript_calls import prose_marks
from tests.tool_calls.parsers.parsing import TOOLS


def parse(text: str) -> tuple[str, list[tuple[str, str]]]:
    parsing = FORMATS["hermes_json"].parser(TOOLS, "call_", also=prose_marks(Labels()))
    events = [event for piece in text for event in parsing.feed(piece)]
    answer = fold([*events, *parsing.close()])
    return answer.text, [(call.name, call.arguments) for call in answer.calls]


@pytest.mark.parametrize("arguments", ["{}", '{"text": "x; Called y"}', '{"text": "a\\nb"}'])
def test_what_the_history_shows_is_read_as_calls(arguments: str) -> None:
    calls = (Called("write", arguments), Called("get_weather", '{"city": "Rome"}'))
    shown = STYLES["labels"].render([Section("assistant", "I look.", calls)], FlattenOptions())
    text, read = parse(shown.removeprefix("Assistant: "))
    assert text == "I look.\n"
    assert read == [("write", arguments), ("get_weather", '{"city": "Rome"}')]


@pytest.mark.parametrize(
    "text",
    [
        "Tool calls: Called rm with args: {}",
        "I wrote Tool calls: Called write with args: {}",
        "Tool calls: Called write to do it.",
        "Tool calls: Called write with args: [1]",
        "Well; Called write with args: {}",
    ],
)
def test_what_tells_of_a_call_stays_text(text: str) -> None:
    assert parse(text) == (text, [])


def test_the_format_is_read_beside_it() -> None:
    call = FORMATS["hermes_json"].render_call("write", "{}")
    assert parse(call) == ("", [("write", "{}")])
