"""docs/dialects/openai_responses.md tells of every field, item and tool what the code does with it."""

import re
from collections.abc import Iterator
from typing import Any, Final, get_args, get_type_hints

import msgspec
import pytest

from adapters.openai_responses.built_in_tools import BUILT_IN
from adapters.openai_responses.call_items import FORMS
from adapters.openai_responses.client.routes import ROUTES
from adapters.openai_responses.table import RequestFields
from tests.adapters.openai_responses.client.requests import read, refused
from tests.adapters.openai_responses.client.stored import Shelf
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "dialects" / "openai_responses.md").read_text(encoding="utf-8")

# A value with which a field asks for something.
VALUES: Final[dict[str, Any]] = {
    "include": ["message.output_text.logprobs"],
    "text.format": {"type": "json_object"},
    "tools": [{"type": "function", "name": "f"}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "stream": True,
    "stream_options.include_obfuscation": True,
    "truncation": "auto",
    "background": True,
    "conversation": "conv_1",
    "prompt": {"id": "pmpt_1"},
    "metadata": {"a": "b"},
    "client_metadata": {"a": "b"},
    "moderation": {"model": "m"},
    "context_management": [{"type": "compaction"}],
    "max_output_tokens": 7,
    "max_tool_calls": 7,
    "top_logprobs": 3,
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), 0.5),
}


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


FATES: Final = dict(re.findall(r"^\| `([\w.]+)` \| (\w+) \|", section("Fields"), re.M))


def fields_of(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """The paths of the fields of a request, where a field is an object those inside it."""
    for name, hint in get_type_hints(kind).items():
        inner = [part for part in get_args(hint) if isinstance(part, type) and issubclass(part, msgspec.Struct)]
        if inner and prefix + name not in FATES:
            yield from fields_of(inner[0], f"{prefix}{name}.")
        elif f"{prefix}{name}".startswith("text.format."):
            yield "text.format"
        else:
            yield f"{prefix}{name}"


def sent(field: str) -> dict[str, Any]:
    """The field with a value, as it stands in a request."""
    outer, _, inner = field.partition(".")
    value = VALUES.get(field, "some text")
    return {outer: {inner: value} if inner else value}


def test_every_field_has_a_row_and_every_row_a_field() -> None:
    assert FATES.keys() - {"input"} == set(fields_of(RequestFields))
    assert set(FATES.values()) == {"honoured", "reported", "stored", "refused"}


@pytest.mark.parametrize("field", [field for field, fate in FATES.items() if fate == "refused"])
def test_a_refused_field_is_named(field: str) -> None:
    error = refused(**sent(field))
    assert (error.status, error.param) == (400, field)
    assert field in error.message


@pytest.mark.parametrize("field", [field for field, fate in FATES.items() if fate == "reported"])
def test_a_reported_field_yields_a_notice(field: str) -> None:
    notices = read(**{"store": False, **sent(field)}).notices
    (told,) = notices
    assert told.stage == "decode" and field in told.detail


def test_what_concerns_the_store_changes_what_is_read_or_written_there() -> None:
    assert {field for field, fate in FATES.items() if fate == "stored"} == {"store", "previous_response_id"}
    shelf = Shelf()
    first = shelf.answer("Hello")
    assert len(shelf.read("More", previous_response_id=first).conversation.turns) == 3
    assert shelf.read(store=False).to_store is None


@pytest.mark.parametrize("field", [field for field, fate in FATES.items() if fate == "honoured"])
def test_an_honoured_field_changes_the_conversation(field: str) -> None:
    value = sent(field)
    asked = {"tools": VALUES["tools"]} if field == "tool_choice" else {}
    without = read(store=False, **asked)
    with_field = read(**{"store": False, "input": "Hello", **asked, **value}) if field != "input" else read("Other")
    assert with_field.notices == without.notices or field == "input"
    changed = msgspec.structs.replace(with_field, source=without.source)
    assert changed != without, "the field has no effect"


def test_every_item_and_every_tool_has_a_row() -> None:
    items = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", section("Items"), re.M))))
    assert {name for form in FORMS.values() for name in (form.call, form.output)} <= items
    tools = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", section("Tools"), re.M))))
    assert {*FORMS, *BUILT_IN, "namespace"} == tools


def test_every_route_is_told() -> None:
    told = section("Routes")
    for route in ROUTES:
        assert route.path.removeprefix("/v1").replace("/responses/{id}/", "/").partition("?")[0] in told
