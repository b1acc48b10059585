"""Each field of a message is traced to the place of the template that made it."""

import re
from typing import Any, Final

import msgspec
import pytest

from gateway.adapter import SchemaAdapter
from gateway.core.conversation import Json
from gateway.diagnostics.explain_request import explain_request
from gateway.diagnostics.explain_text import explain_text
from gateway.diagnostics.explanation import Encoded
from gateway.registry import load_adapters
from gateway.settings import read_settings
from tests.adapters.proto.backend.mappings import DELTAS, LISTS, MAPPINGS, PARTS, SET, Entry

REQUEST: Final[Entry] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look there."},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}},
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"at": "y"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "tool", "tool_call_id": "c2", "content": "seen, too"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
    "max_tokens": 7,
    "temperature": 0.5,
    "stop": ["END", "OVER"],
}


def explained(mapping: Entry, more: dict[str, Json]) -> Encoded:
    settings = read_settings(
        {"backends": {"b": {"adapter": "proto", "base_url": "http://h", **mapping}}, "models": {"m": {"backend": "b"}}}
    )
    body = msgspec.json.encode({"model": "m", **REQUEST, **more})
    explanation = explain_request(body, settings, load_adapters(settings))
    assert explanation.error is None and explanation.encoded is not None
    page = explain_text(explanation, [])
    for one in explanation.encoded.fields:
        assert re.search(rf"^  {re.escape(one.field)} +<- {re.escape(one.place)} ", page, re.MULTILINE)
    return explanation.encoded


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The leaves of a message as JSON, by path. (Any: JSON at any depth.)"""
    match value:
        case dict():
            found = [leaves(below, f"{path}.{name}" if path else name) for name, below in value.items()]
        case list():
            found = [leaves(below, f"{path}[{position}]") for position, below in enumerate(value)]
        case _:
            return {path: value}
    return {name: leaf for one in found for name, leaf in one.items()}


def in_template(template: Any, place: str) -> Any:
    """The part of a template at a place such as `request.turns.user.parts[0].text`. (Any: JSON at any depth.)"""
    for name, position in re.findall(r"\.([\w$]+)|\[(\d+)\]", place):
        template = template[name] if name else template[int(position)]
    return template


@pytest.mark.parametrize("name", MAPPINGS)
def test_the_places_explain_the_whole_message(name: str) -> None:
    mapping = MAPPINGS[name]
    found = explained(mapping, {} if name == "parts" else {"tool_choice": "auto"})
    # One field may hold a whole object, or a list of texts.
    fields = {one.field: one for one in found.fields}
    assert leaves(found.decoded)
    for path in leaves(found.decoded):
        assert any(path == field or path.startswith((f"{field}.", f"{field}[")) for field in fields), path
    for one in found.fields:
        part = in_template(mapping["request"], one.place.removeprefix("request"))
        assert not isinstance(part, dict) or "$json" in part or one.field.endswith(".body")  # a Struct
        if "$" not in str(part) and not isinstance(part, dict):
            assert one.value == part


def test_a_variant_is_part_of_the_place() -> None:
    found = {one.field: one for one in explained(PARTS, {}).fields}
    assert found["turns[2].parts[1].call.id"].place == "request.turns.assistant.parts.call.call.id"
    assert found["turns[2].parts[2].call.id"].value == "c2"
    assert found["choice.tool"] == msgspec.structs.replace(found["choice.tool"], place="request.choice.named.tool")
    assert found["turns[4].parts[0].result.text"].value == "seen, too"


def test_fields_without_a_place_are_named_as_the_client_names_them() -> None:
    found = explained(DELTAS, {"seed": 3, "user": "u", "top_p": None, "tool_choice": "auto"})
    assert found.unsent == ("temperature", "seed", "user")


def test_the_schema_is_told_with_its_digest() -> None:
    found = explained(PARTS, {})
    settings = read_settings({"backends": {"b": {"adapter": "proto", "base_url": "http://h", **PARTS}}})
    adapter = load_adapters(settings)["b"]
    assert isinstance(adapter, SchemaAdapter) and found.schema is not None
    assert (found.schema.source, found.schema.sha256) == (SET, adapter.schema.sha256)
    assert re.fullmatch("[0-9a-f]{64}", found.schema.sha256)


def test_the_schema_of_a_preset_is_told_by_its_name() -> None:
    entry: dict[str, Json] = {"adapter": "proto", "base_url": "http://h", "preset": "demo"}
    adapter = load_adapters(read_settings({"backends": {"b": entry}}))["b"]
    assert isinstance(adapter, SchemaAdapter) and adapter.schema.source == "preset demo"


def test_a_list_in_a_struct_has_a_place() -> None:
    function = {"name": "look", "arguments": '{"files": ["a", {"b": [1]}]}'}
    called = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    messages = [REQUEST["messages"][1], called]
    found = {one.field: one for one in explained(LISTS, {"messages": messages, "tool_choice": "auto"}).fields}
    place = found["messages[1].call_list.calls[0].arguments"]
    assert place.place == "request.messages.assistant[1].call_list.calls.as.arguments"
    assert place.value == {"files": ["a", {"b": [1]}]}


def test_a_message_of_a_mapping_is_attributed_to_no_turn() -> None:
    """One turn may be several messages, and several turns one: equal counts say nothing."""
    settings = read_settings(
        {"backends": {"b": {"adapter": "proto", "base_url": "http://h", **LISTS}}, "models": {"m": {"backend": "b"}}}
    )
    body = msgspec.json.encode({"model": "m", **REQUEST, "messages": REQUEST["messages"][1:]})
    explanation = explain_request(body, settings, load_adapters(settings))
    assert len(explanation.wire) == 4 == len(REQUEST["messages"][1:])
    assert explanation.wire[2]["role"] == "assistant"
    assert explanation.indexes.wire == (None,) * 4
