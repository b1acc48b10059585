"""Tests calls as a name, a label and an object, also in the notation of a flattened history."""

import pytest

from gateway.core.errors import BackendTruncated, InvalidToolCall
from gateway.core.policy import FlattenOptions, Labels
from gateway.history.transcript.sections import Called, Section
from gateway.history.transcript.styles import STYLES
from gateway.testing.events import fold
from gateway.tool_calls.parsers.formats import FORMATS
from gateway.tool_calls.parsers.labelled_call import prose_marks
from tests.tool_calls.parsers.parsing import TOOLS, parse


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('{"text": "x"}', '{"text": "x"}'),
        ('\n{"text": "a\nb"}', '{"text": "a\\nb"}'),
        ('"{\\"text\\": 1}"', '{"text": 1}'),
        ("null\n", "{}"),
        ('""', "{}"),
    ],
)
def test_the_arguments_follow_their_label(written: str, expected: str) -> None:
    text = f"Thought: I write.\nAction: write\nAction Input: {written}"
    for pieces in ([text], list(text)):
        parsed = parse(pieces, "react")
        assert [(call.name, call.arguments) for call in parsed.calls] == [("write", expected)]
        assert (parsed.text, parsed.error) == ("Thought: I write.\n", None)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Action: rm\nAction Input: {}", "TEXT_CALL_UNKNOWN"),
        ("Action: write\nThen more.", "TEXT_CALL_BROKEN"),
        ("Action: " + "x" * 300, "TEXT_CALL_BROKEN"),
        ("Action: write", "TEXT_CALL_BROKEN"),
    ],
)
def test_what_is_no_call_stays_text(text: str, rule: str) -> None:
    for pieces in ([text], list(text)):
        parsed = parse(pieces, "react")
        assert (parsed.text, parsed.calls, parsed.error, parsed.rules) == (text, (), None, [rule])


@pytest.mark.parametrize("spoilt", ["Rome", '"Rome"', "nothing\n", '"{\\"text\\": "', "[1]", "12 "])
def test_arguments_that_are_no_object_are_an_error_and_no_text(spoilt: str) -> None:
    text = f"Thought: I write.\nAction: write\nAction Input: {spoilt}"
    for pieces in ([text], list(text)):
        parsed = parse(pieces, "react")
        assert (parsed.text, parsed.calls) == ("Thought: I write.\n", ())
        assert parsed.error is not None and parsed.error[0] is InvalidToolCall


@pytest.mark.parametrize("cut", ["", " ", ' "{\\"text', ' "{\\"text\\": 1}', " nul"])
def test_an_answer_that_ends_before_its_arguments_do_is_cut(cut: str) -> None:
    for pieces in ([f"Action: write\nAction Input:{cut}"], list(f"Action: write\nAction Input:{cut}")):
        parsed = parse(pieces, "react")
        assert parsed.error is not None and parsed.error[0] is BackendTruncated and parsed.text == ""


def test_a_label_inside_a_line_is_prose() -> None:
    text = "The Action: write\nAction Input: {}"
    assert parse([text], "react").text == text


def test_an_object_that_breaks_is_an_error() -> None:
    assert parse(["Action: write\nAction Input: {1}"], "react").error is not None


def parse_notation(text: str) -> tuple[str, list[tuple[str, str]]]:
    parsing = FORMATS["hermes_json"].parser(TOOLS, "call_", also=prose_marks(Labels()))
    events = [event for piece in text for event in parsing.feed(piece)]
    answer = fold([*events, *parsing.close()])
    return answer.text, [(call.name, call.arguments) for call in answer.calls]


@pytest.mark.parametrize("arguments", ["{}", '{"text": "x; Called y"}', '{"text": "a\\nb"}'])
def test_what_the_history_shows_is_read_as_calls(arguments: str) -> None:
    calls = (Called("write", arguments), Called("get_weather", '{"city": "Rome"}'))
    shown = STYLES["labels"].render([Section("assistant", "I look.", calls)], FlattenOptions())
    text, read = parse_notation(shown.removeprefix("Assistant: "))
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
    assert parse_notation(text) == (text, [])


def test_the_format_is_read_beside_it() -> None:
    call = FORMATS["hermes_json"].render_call("write", "{}")
    assert parse_notation(call) == ("", [("write", "{}")])
