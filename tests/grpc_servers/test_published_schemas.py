"""The schema of each preset, in our own words, against the published one of its provider."""

from collections.abc import Iterator
from typing import Final

import pytest

from adapters.proto.backend import ProtoOptions
from adapters.proto.backend.schema import Field, MessageType, Schema
from gateway.settings.presets import preset_defaults
from tests.grpc_servers.installed import needs
from tests.grpc_servers.published import PUBLISHED, Published
from tests.paths import ROOT

pytestmark = [pytest.mark.grpc, needs()]
PRESETS: Final = ROOT / "adapters" / "proto" / "presets"
NAMES: Final = sorted(path.stem for path in PRESETS.glob("*.json"))


def test_every_preset_has_its_package_or_the_reason_why_not() -> None:
    assert sorted(PUBLISHED) == NAMES


@needs("schemas")
@pytest.mark.parametrize("name", NAMES)
def test_a_schema_says_what_its_provider_says(name: str) -> None:
    published = PUBLISHED[name]
    if not isinstance(published, Published):
        pytest.skip(f"NOT RUN: {published}")
    entry = preset_defaults({"preset": name}, ProtoOptions, name)
    method = Schema(entry["schema"]).method(entry["method"])
    request, response = published.messages()
    assert published.names_method(method.path)
    seen: set[str] = set()
    found = [*differences(method.request, request, seen), *differences(method.response, response, seen)]
    assert found == [], "\n".join(found)


def differences(own: MessageType, real: MessageType, seen: set[str]) -> Iterator[str]:
    """What our message says otherwise, at any depth."""
    if own.full_name in seen:
        return
    seen.add(own.full_name)
    for field in own.fields:
        place = f"{own.full_name}.{field.name}"
        known = real.fields_by_name.get(field.name)
        if known is None:
            yield f"{place} does not exist"
            continue
        if described(field) != described(known):
            yield f"{place} is {described(field)}, really {described(known)}"
        if oneof(field) not in (None, oneof(known)):
            yield f"{place} is in the oneof {oneof(field)!r}, really in {oneof(known)!r}"
        if field.message_type is not None and known.message_type is not None:
            yield from differences(field.message_type, known.message_type, seen)
        if field.enum_type is not None and known.enum_type is not None:
            numbers = {value.name: value.number for value in known.enum_type.values}
            for value in field.enum_type.values:
                if (number := numbers.get(value.name)) != value.number:
                    yield f"{field.enum_type.full_name}.{value.name} is {value.number}, really {number}"


def described(field: Field) -> dict[str, object]:
    """What decides about the bytes of a field, and about the value that is not sent."""
    return {
        "number": field.number,
        "type": field.type,
        "repeated": field.is_repeated,
        "presence": field.has_presence,
    }


def oneof(field: Field) -> str | None:
    """The name of the oneof with this field. A field that is `optional` has one of its own, which is none."""
    found = field.containing_oneof
    return found.name if found is not None and found.name != f"_{field.name}" else None
