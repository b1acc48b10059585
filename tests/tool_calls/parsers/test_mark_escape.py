"""Text that is not a call is never parsed as one."""

import json

import pytest
from hypothesis import given

from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.formats import FORMATS
from gateway.tool_calls.parsers.mark_escape import escaped
from tests.tool_calls.parsers.parsing import TOOLS, parse
from tests.tool_calls.parsers.test_laws import NAMES, SOUP

CALL = {"hermes_json": "<tool_call>", "qwen_xml": "<tool_call>", "fenced_json": "```tool_call", "react": "Action:"}


def shown(text: str, name: str) -> str:
    return escaped(text, FORMATS[name].marks, Declared(TOOLS))


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("words", ["%s", "You could write\n%s\nto do it.", "%s\n%s", "\n %s"])
def test_a_call_in_words_stands_behind_a_backslash(name: str, words: str) -> None:
    text = words.replace("%s", FORMATS[name].render_call("write", '{"text": "x"}'))
    told = shown(text, name)
    assert told.replace("\\", "") == text != told
    assert parse([told], name).calls == ()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_beginning_of_a_call_and_one_of_another_tool_read_as_calls_as_well(name: str) -> None:
    call = FORMATS[name].render_call("write", '{"text": "x"}')
    assert shown(call[: call.index("x")], name).startswith("\\")
    if name != "bare_json":
        assert shown(call.replace("write", "other"), name).startswith("\\")


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("text", ["", "Well.", "{}", '{"a": 1}', "<tool_call>...", "A <function= b", "Action: run!"])
def test_other_words_stay_as_they_are(name: str, text: str) -> None:
    assert shown(text, name) == text


@given(NAMES, SOUP)
def test_no_parser_finds_a_call_in_words(name: str, text: str) -> None:
    told = shown(text, name)
    parsed = parse([told], name)
    assert (parsed.calls, parsed.error, parsed.text) == ((), None, told)
    assert told == text or told.replace("\\", "") == text.replace("\\", "")
    assert shown(told, name) == told


def test_a_long_text_is_looked_at_once() -> None:
    text = "<tool_call>\n{" * 50_000 + json.dumps({"name": "write", "arguments": {}})
    assert parse([shown(text, "hermes_json")]).calls == ()
