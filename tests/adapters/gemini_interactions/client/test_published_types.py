"""Every event and every object is one of Google's published types, and every published field has a row in the table."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from hypothesis import given

from adapters.gemini_interactions.table import CONFIG, INPUT, TABLE
from gateway.core.events import Event
from gateway.testing.dialect_case import HEAD, greeting
from tests.adapters.gemini_interactions.client.stored import Shelf
from tests.adapters.gemini_interactions.client.test_conformance import CASE
from tests.adapters.gemini_interactions.client.test_stored import CALLED, RESULT
from tests.dialects.test_whole_answers import signed
from tests.paths import ROOT

PUBLISHED: Final = json.loads((ROOT / "tests" / "same_api" / "gemini_interactions.json").read_bytes())
# What the gateway adds to the types, which allow any further field: its notes, whether an interaction is stored, why an
# answer is not whole, and the signature of a call, which Google's own answers have, too.
ADDED: Final = {
    "Interaction": ("store", "dragoman", "object"),
    "InteractionSseEventInteraction": ("store", "dragoman", "errors", "previous_interaction_id"),
    "FunctionCallStep": ("signature",),
}
STREAMS: Final = sorted((ROOT / "tests" / "golden").glob("gemini_interactions_*/client_stream.txt"))


def validator(name: str) -> Any:  # Any: jsonschema has no types
    definitions = {**PUBLISHED["$defs"]}
    for kind, fields in ADDED.items():
        known = definitions[kind]
        definitions[kind] = {**known, "properties": {**known["properties"], **dict.fromkeys(fields, True)}}
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})


EVENT: Final = validator("InteractionSSEEvent")
INTERACTION: Final = validator("Interaction")


def events(data: bytes) -> Iterator[Any]:
    for line in data.split(b"\n"):
        if line.startswith(b"data: {"):
            yield json.loads(line.removeprefix(b"data: "))


def check(data: bytes) -> None:
    found = [*events(data)]
    assert found
    for event in found:
        EVENT.validate(event)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.parent.name)
def test_the_golden_streams_are_of_the_published_types(path: Path) -> None:
    check(path.read_bytes())


@given(signed("google"))
def test_every_answer_is_of_the_published_types(made: Sequence[Event]) -> None:
    dialect, request = CASE.dialect(), greeting(CASE)
    encoder = dialect.stream_encoder(request, HEAD)
    check(encoder.feed(made) + encoder.close())
    INTERACTION.validate(json.loads(dialect.encode_answer(request, HEAD, made)))


def test_a_stored_interaction_is_of_the_published_type() -> None:
    shelf = Shelf()
    first = shelf.answer("Look up.", CALLED)
    second = shelf.answer([{**RESULT[0], "name": "look"}], previous_interaction_id=first)
    for identity in (first, second):
        for parameters in ("", "include_input=true"):
            INTERACTION.validate(shelf.query("GET", identity, parameters)[0])


@pytest.mark.parametrize(
    "event",
    [
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "prose", "text": "x"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "function_call", "id": "a", "name": "f"}},
        {"event_type": "step.stop", "index": 0, "mood": 1},
        {"event_type": "interaction.ended", "index": 0},
    ],
)
def test_another_event_is_none_of_the_published_types(event: Any) -> None:
    assert not EVENT.is_valid(event)


def test_every_published_field_of_a_request_has_a_row() -> None:
    # The gateway serves no agents: what only they have is refused, too.
    own = {"agent", "agent_config"}
    assert {row.path for row in TABLE.rows if "." not in row.path} - own == set(PUBLISHED["request"])
    fields = {row.field for row in TABLE.rows if row.path.startswith("generation_config.")}
    assert fields == set(PUBLISHED["generation_config"])
    assert INPUT in PUBLISHED["request"] and CONFIG.reported
