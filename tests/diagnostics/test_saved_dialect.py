"""A saved request is recognised by its shape."""

import json
from typing import Any, Final

import pytest

from gateway.core.errors import InvalidRequest, SettingsError
from gateway.diagnostics.lint import lint
from gateway.diagnostics.saved_dialect import saved_dialect
from gateway.registry import DIALECTS, load_dialect

USE: Final = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
ORPHAN: Final = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "lost"}]}
HELLO: Final = {"role": "user", "content": "Hello"}
TOOL: Final = {"role": "tool", "tool_name": "f", "content": "1"}

SHAPES: Final[dict[str, list[Any]]] = {
    "openai_chat": [
        [],
        [HELLO],
        {"messages": [HELLO], "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"messages": [{"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "system"}]}]},
        {"model": "m"},
    ],
    "anthropic_messages": [[USE], [ORPHAN], {"messages": [ORPHAN]}, {"messages": [HELLO], "system": "Be brief."}],
    "openai_responses": [
        {"input": "Hello"},
        {"input": [HELLO, {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]},
        [{"type": "function_call_output", "call_id": "a", "output": "lost"}],
    ],
    "ollama": [{"messages": [HELLO], "options": {}}, [TOOL]],
    "openai_completions": [{"prompt": "Hello"}],
    "gemini_interactions": [
        {"input": [{"type": "user_input", "content": "Hello"}]},
        {"input": "Hello", "generation_config": {}},
        [{"type": "function_result", "call_id": "a", "result": "lost"}],
        # The other API with `input` has steps of this type, too.
        {"input": [{"type": "function_call", "id": "a", "name": "f", "arguments": {}}, {"type": "thought"}]},
    ],
    "gemini": [{"contents": []}, [{"role": "user", "parts": [{"text": "Hello"}]}]],
}


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name, shapes in SHAPES.items() for shape in shapes])
def test_the_shape_tells_the_dialect(name: str, shape: Any) -> None:
    assert saved_dialect(json.dumps(shape).encode()).name == name


def test_every_dialect_has_a_shape() -> None:
    assert SHAPES.keys() == DIALECTS.keys()


@pytest.mark.parametrize(
    "shape", [[USE, TOOL], {"messages": [USE, TOOL]}, {"messages": [HELLO], "system": "", "think": 1}]
)
def test_a_request_of_several_dialects_must_be_named(shape: Any) -> None:
    data = json.dumps(shape).encode()
    with pytest.raises(InvalidRequest, match=r"ollama and of anthropic_messages; name its dialect with --dialect\."):
        saved_dialect(data)
    assert saved_dialect(data, "ollama").name == "ollama"


def test_only_a_known_dialect_can_be_named() -> None:
    with pytest.raises(SettingsError, match="there is no dialect 'olama'"):
        saved_dialect(b"[]", "olama")


@pytest.mark.parametrize("name", DIALECTS)
def test_a_bare_history_lacks_no_field_that_its_dialect_requires(name: str) -> None:
    example = load_dialect(name).example("m")
    history = example[load_dialect(name).paths.param("messages")]
    if isinstance(history, list):
        assert lint("a.json", json.dumps(history).encode(), dialect=name) == []


def test_each_line_has_its_own_dialect() -> None:
    lines = [json.dumps(shape) for shape in ([ORPHAN], {"input": [{"type": "function_call_output", "call_id": "a"}]})]
    found = [(finding.line, finding.violation.param) for finding in lint("a.jsonl", "\n".join(lines).encode())]
    assert found == [(1, "messages[0].content[0]"), (2, "input[0].output"), (2, "input[0].type")]
