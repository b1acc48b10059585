"""Tests the description of tools for a model, and the schema of a call for a constrained backend."""

import json

import pytest

from gateway.core.conversation import NamedTool, ToolChoice, ToolSpec
from gateway.tool_calls.parsers.formats import DEFAULT_FORMAT, FORMATS
from gateway.tool_calls.parsers.schema import call_schema
from tests.tool_calls.parsers.parsing import TOOLS, parse


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_section_tells_every_tool_and_shows_a_call(name: str) -> None:
    section = FORMATS[name].render_tools(TOOLS, "auto", True)
    assert '"name": "get_weather"' in section and '"days": {"type": "integer"}' in section
    assert "Tells the weather." in section and "NAME" in section
    assert section == FORMATS[name].render_tools(TOOLS, "auto", True)


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize(("tools", "choice"), [((), "auto"), (TOOLS, "none"), (TOOLS, NamedTool("rm"))])
def test_there_is_no_section_without_anything_to_call(
    name: str, tools: tuple[ToolSpec, ...], choice: ToolChoice
) -> None:
    assert FORMATS[name].render_tools(tools, choice, True) == ""
    assert FORMATS[name].grammar(tools, choice) is None


def test_the_section_says_when_to_call() -> None:
    tell = FORMATS[DEFAULT_FORMAT].render_tools
    assert "You must call a function now" in tell(TOOLS, "required", True)
    assert "You must call the function write now" in tell(TOOLS, NamedTool("write"), True)
    assert "at most one function" in tell(TOOLS, "auto", False)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_section_says_what_the_history_shows(name: str) -> None:
    several = FORMATS[name].render_tools(TOOLS, "auto", True)
    assert "several functions" in several and "at most one" not in several
    assert "observation" not in several.lower() and "nothing before" not in several
    assert "at most one function" in FORMATS[name].render_tools(TOOLS, "auto", False)


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("arguments", ["", "{", "[1]", '"x"', '{"a": 1, "a": 2}', '{"a": "x\ny"}', "</tool_call>"])
def test_a_call_of_the_history_is_shown_whatever_its_arguments_are(name: str, arguments: str) -> None:
    shown = FORMATS[name].render_call("write", arguments)
    assert "write" in shown
    if arguments in ("", '{"a": "x\ny"}'):
        (call,) = parse([shown], name).calls
        assert isinstance(json.loads(call.arguments), dict)


@pytest.mark.parametrize("name", ["hermes_json", "fenced_json", "bare_json", "qwen_xml"])
def test_a_constrained_answer_is_a_call(name: str) -> None:
    constraint = FORMATS[name].grammar(TOOLS, "required")
    assert constraint is not None
    answer = '{"name": "write", "arguments": {"text": "x"}}'
    (call,) = parse([constraint.prefill, answer], name).calls
    assert (call.name, call.arguments) == ("write", '{"text": "x"}')
    assert FORMATS[name].grammar(TOOLS, "auto") is None


def test_a_labelled_call_is_constrained_when_one_tool_is_left() -> None:
    constraint = FORMATS["react"].grammar(TOOLS, NamedTool("write"))
    assert constraint is not None and constraint.schema == TOOLS[1].parameters
    (call,) = parse([constraint.prefill, '{"text": "x"}'], "react").calls
    assert call.name == "write"
    assert FORMATS["react"].grammar(TOOLS, "required") is None


def test_the_schema_is_one_call_with_the_name_first() -> None:
    schema = call_schema(TOOLS[1:])
    assert json.dumps(schema) == (
        '{"type": "object", "properties": {"name": {"const": "write"}, "arguments": '
        + json.dumps(TOOLS[1].parameters)
        + '}, "required": ["name", "arguments"], "additionalProperties": false}'
    )
    branches = call_schema(TOOLS)["anyOf"]
    assert isinstance(branches, list) and len(branches) == 2


def test_references_move_with_the_schema_they_belong_to() -> None:
    tree = ToolSpec("tree", "", {"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "properties": {"a": {"$ref": "#"}}})
    schema = call_schema([*TOOLS, tree])
    assert schema["$defs"] == {
        "tool2": {
            "$defs": {"n": {"items": {"$ref": "#/$defs/tool2/$defs/n"}}},
            "properties": {"a": {"$ref": "#/$defs/tool2"}},
        }
    }
    assert '"arguments": {"$ref": "#/$defs/tool2"}' in json.dumps(schema)
