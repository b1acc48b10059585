"""A backend that ignores a field answers as if the request did not have it; the sound backend does not."""

from typing import Any, Final

import pytest

from tests.demo.faults.requests import SCHEMA, TOOLS_OF, Body, answer, body_of

_FORMAT: Final[Body] = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
_CONFIG: Final = "generationConfig"

# The field, as each wire has it, by the defect that ignores it.
FIELDS: Final[dict[str, dict[str, Body]]] = {
    "ignores_stop": {
        "chat": {"stop": ["4"]},
        "messages": {"stop_sequences": ["4"]},
        "gemini": {_CONFIG: {"stopSequences": ["4"]}},
        "text": {"stop": ["4"]},
    },
    "ignores_max_tokens": {
        "chat": {"max_completion_tokens": 2},
        "responses": {"max_output_tokens": 2},
        "gemini": {_CONFIG: {"maxOutputTokens": 2}},
        "text": {"n_predict": 2},
    },
    "ignores_response_format": {
        "chat": {"response_format": _FORMAT},
        "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "responses": {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}},
        "gemini": {_CONFIG: {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
    },
    "ignores_n": {"chat": {"n": 2}},
    "ignores_logprobs": {"chat": {"logprobs": True}},
    "ignores_tools": {kind: tools for kind, tools in TOOLS_OF.items()},
    "ignores_stream": {kind: {"stream": True} for kind in ("chat", "messages", "responses", "text")},
}
CASES: Final = [(name, kind) for name, fields in FIELDS.items() for kind in fields]


@pytest.mark.parametrize(("name", "kind"), CASES)
async def test_the_field_changes_nothing(name: str, kind: str) -> None:
    body: Any = body_of(kind, "What is the weather in Rome?" if name == "ignores_tools" else "count to ten")
    asked = {**body, **FIELDS[name][kind]}
    plain = (await answer(kind, None, body)).content
    assert (await answer(kind, None, asked)).content != plain
    assert (await answer(kind, name, asked)).content == plain
