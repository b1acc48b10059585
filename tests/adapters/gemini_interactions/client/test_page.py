"""docs/dialects/gemini_interactions.md tells of every field, step, content and route what the code does with it."""

import re
from collections.abc import Iterator
from typing import Any, Final, get_args, get_type_hints

import msgspec
import pytest

from adapters.gemini_interactions.client.contents import KINDS
from adapters.gemini_interactions.client.own_steps import CALL, MODEL, RESULT, THOUGHT, USER
from adapters.gemini_interactions.table import RequestFields
from tests.adapters.gemini_interactions.client.stored import DIALECT, Shelf, read, refused
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "dialects" / "gemini_interactions.md").read_text(encoding="utf-8")
FUNCTION: Final = {"type": "function", "name": "f"}
# A value with which a field asks for something.
VALUES: Final[dict[str, Any]] = {
    "model": "another",
    "input": "Other",
    "stream": True,
    "tools": [FUNCTION],
    "tool_choice": "any",
    "response_format": {"type": "text", "mime_type": "application/json"},
    "response_mime_type": "application/json",
    "response_modalities": ["text", "audio"],
    "service_tier": "flex",
    "store": False,
    "background": True,
    "environment": {},
    "agent": "deep-research",
    "safety_settings": [{"type": "jailbreak", "threshold": "off"}],
    "max_output_tokens": 7,
    "seed": 7,
    "stop_sequences": ["."],
    "thinking_level": "low",
    "thinking_summaries": "auto",
    **dict.fromkeys(("temperature", "top_p"), 0.5),
    **{
        name: {"a": "b"}
        for name in ("labels", "webhook_config", "image_config", "transcription_config", "video_config")
    },
}


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


FATES: Final = dict(re.findall(r"^\| `([\w.]+)` \| (\w+) \|", section("Fields"), re.M))
FIELDS: Final = [field for field in FATES if field != "generation_config"]


def fields_of(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(kind).items():
        yield f"{prefix}{name}"
        for inner in get_args(hint):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from fields_of(inner, f"{prefix}{name}.")


def sent(field: str) -> dict[str, Any]:
    outer, _, inner = field.partition(".")
    value = VALUES.get(inner or outer, "some text")
    return {outer: {inner: value} if inner else value}


def test_every_field_has_a_row_and_every_row_a_field() -> None:
    assert FATES.keys() - {"input"} == set(fields_of(RequestFields))
    assert set(FATES.values()) == {"honoured", "reported", "stored", "refused"}


@pytest.mark.parametrize("field", [field for field in FIELDS if FATES[field] == "refused"])
def test_a_refused_field_is_named(field: str) -> None:
    error = refused(**sent(field))
    assert (error.status, error.param) == (400, field)
    assert field in error.message


@pytest.mark.parametrize("field", [field for field in FIELDS if FATES[field] == "reported"])
def test_a_reported_field_yields_a_notice(field: str) -> None:
    (told,) = read(store=False, **sent(field)).notices
    assert (told.rule, told.stage) == ("FIELD_NOT_SENT", "decode")
    assert repr(field) in told.detail


def test_an_unknown_field_yields_a_notice() -> None:
    notices = read(mood="fine", generation_config={"warmth": 1}).notices
    assert [notice.detail.rpartition(" ")[2] for notice in notices] == ["'mood'", "'generation_config.warmth'"]


def test_what_concerns_the_store_changes_what_is_read_or_written_there() -> None:
    assert {field for field, fate in FATES.items() if fate == "stored"} == {"store", "previous_interaction_id"}
    shelf = Shelf()
    first = shelf.answer("Hello")
    assert len(shelf.read("More", previous_interaction_id=first).conversation.turns) == 3
    assert shelf.read(store=False).to_store is None


@pytest.mark.parametrize("field", [field for field in FIELDS if FATES[field] == "honoured"])
def test_an_honoured_field_changes_the_conversation(field: str) -> None:
    asked: dict[str, Any] = {"input": "Hello", "store": False}
    if field.endswith("tool_choice"):
        asked["tools"] = [FUNCTION]
    without, with_field = read(**asked), read(**{**asked, **sent(field)})
    assert with_field.notices == without.notices == ()
    assert msgspec.structs.replace(with_field, source=without.source) != without, "the field has no effect"


def test_every_step_and_every_content_has_a_row() -> None:
    rows = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", section("Steps"), re.M))))
    assert rows - {"uri"} == {USER, MODEL, THOUGHT, CALL, RESULT, *KINDS}


def test_every_route_has_a_row() -> None:
    told = set(re.findall(r"`([A-Z]+ /\S+)`", section("Routes")))
    routes = {f"{route.method} {route.path}" for route in DIALECT.routes}
    assert told == {route for route in routes if "/v1beta/" in route}
    assert routes - told == {route.replace("/v1beta/", "/v1/") for route in told}
