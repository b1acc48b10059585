"""An item of the backend reaches a client of the same API with every field, known or unknown, streamed or whole."""

from typing import Any, Final

import msgspec
import pytest

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.events import Event
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.testing.dialect_case import HEAD
from tests.adapters.openai_responses.backend.reading import OTHER, OWN, played, rules
from tests.adapters.openai_responses.backend.wires import (
    WireEvent,
    added,
    call,
    created,
    delta,
    done,
    ended,
    message,
    reasoning,
    sse,
    whole,
)
from tests.adapters.openai_responses.client.client import check_response, streamed

DIALECT: Final = OpenAIResponsesDialect()
REQUEST: Final = {
    "model": "m",
    "input": "x",
    "tools": [{"type": "custom", "name": "run"}, {"type": "shell"}, {"type": "apply_patch"}],
}
OWN_FIELDS: Final[WireEvent] = {"x_own": {"a": [1, None]}, "phase": "final_answer"}
CUSTOM: Final[WireEvent] = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "run"}
SHELL: Final[WireEvent] = {"type": "shell_call", "id": "sh_1", "call_id": "a", "action": {"commands": ["ls"]}}

# Each item as it begins, the event with its text, and the item as it ends.
ITEMS: Final[dict[str, tuple[WireEvent, list[WireEvent], WireEvent]]] = {
    "message": (message(), [delta("output_text", 0, "a", content_index=0)], message("a")),
    "empty message": (message(), [], message("")),
    "function": (call(), [delta("function_call_arguments", 0, "{}")], call("{}")),
    "custom tool": (
        {**CUSTOM, "input": ""},
        [delta("custom_tool_call_input", 0, "a")],
        {**CUSTOM, "input": "a"},
    ),
    "shell": (SHELL, [], SHELL),
    "summary": (reasoning(), [delta("reasoning_summary_text", 0, "a", summary_index=0)], reasoning(["a"])),
    "reasoning": (reasoning(), [delta("reasoning_text", 0, "a", content_index=0)], reasoning((), ["a"])),
    "encrypted reasoning": (reasoning(), [], reasoning(encrypted_content="e")),
    "stored reasoning": (reasoning(), [], reasoning()),
}


def items(events: list[Event]) -> list[dict[str, Any]]:
    """The items that a strict client reads in a stream; a whole answer has the same."""
    request = DIALECT.decode(read_document(msgspec.json.encode(REQUEST)), RequestHead(""))
    encoder = DIALECT.stream_encoder(request, HEAD)
    read = streamed(encoder.feed(events) + encoder.close(), own=True)
    response = msgspec.json.decode(DIALECT.encode_answer(request, HEAD, events))
    check_response(response)
    assert response == read.last
    return list(read.done.values())


def wires(name: str, begun: WireEvent, over: WireEvent) -> tuple[bytes, bytes]:
    """An answer of one item, streamed and whole, with these fields at its beginning and at its end."""
    first, texts, last = ITEMS[name]
    last = {**last, **begun, **over}
    return sse(created(), added(0, {**first, **begun}), *texts, done(0, last), ended()), whole(last)


@pytest.mark.parametrize("begun", [{}, OWN_FIELDS, {**OWN_FIELDS, "x_own": 1}], ids=["late", "early", "changed"])
@pytest.mark.parametrize("name", ITEMS)
def test_the_unknown_fields_of_an_item_reach_the_client(name: str, begun: WireEvent) -> None:
    for wire in wires(name, begun, OWN_FIELDS):
        (item,) = items(played(wire, OWN))
        expected = {**ITEMS[name][2], **OWN_FIELDS}
        assert {field: item[field] for field in expected} == expected


@pytest.mark.parametrize("name", ITEMS)
def test_a_client_of_another_dialect_is_told_that_it_does_not_get_them(name: str) -> None:
    for wire in wires(name, {}, OWN_FIELDS):
        assert rules(wire, OTHER) == ["FIELD_NOT_SHOWN"]


def test_reasoning_that_follows_reasoning_stays_apart() -> None:
    one, two = reasoning((), ["a"]), {**reasoning((), ["b"]), "id": "rs_2"}
    assert [item["id"] for item in items(played(whole(one, two), OWN))] == ["rs_1", "rs_2"]


LENGTH: Final = ended("incomplete", incomplete_details={"reason": "max_output_tokens"})


@pytest.mark.parametrize("name", ["function", "custom tool", "shell", "message"])
@pytest.mark.parametrize("ends", [True, False], ids=["done", "open"])
@pytest.mark.parametrize("grows", [True, False], ids=["begun", "empty"])
def test_an_item_cut_by_the_length_is_incomplete(name: str, ends: bool, grows: bool) -> None:
    first, texts, _ = ITEMS[name]
    last = [done(0, {**first, "status": "incomplete"})] if ends else []
    wire = sse(created(), added(0, first), *(texts if grows else ()), *last, LENGTH)
    found = items(played(wire, OWN))
    assert [item["status"] for item in found] == ["incomplete"]
    assert all(item.get("arguments") in (None, "", "{}"[: 2 * grows]) for item in found)
