"""Finds what makes the values of a field that holds no message of its own: a name, a text before a name, a constant, a
constant under a condition, or JSON text."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from adapters.proto.backend.field_values import WRAPPERS, item_of
from adapters.proto.backend.schema import Field
from adapters.proto.backend.template_keys import AS, JSON, MARK, WITH
from adapters.proto.backend.template_names import FIELD, Scope
from adapters.proto.learn.json_search import ID, JsonSample, find_json, is_specific, others, shows
from adapters.proto.learn.learned import Doubt, Learned
from adapters.proto.learn.samples import ABSENT, Sample, client_fields, conditions, holds, rendered, value_of
from gateway.core.conversation import Json


def find_value(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned | None:
    """Returns what makes the recorded values of the field; None: nothing does. Of a repeated field they are all its
    items, or the one item that it has."""
    values = [value_of(sample.message, field) for sample in samples]
    named = _named(field, scope, samples, values, place)
    if named is not None and not _is_constant(values):
        return named
    text = _json_text(field, scope, samples, values, place)
    if text is not None and text.evidence:
        return text
    constant = _constant(field, scope, samples, values, place)
    if named is None or constant is None:
        return named or constant or text
    # A field of the client that never changes may be equal by chance.
    if named.template == ID or (_specific(values) and FIELD not in str(named.template)):
        return named
    return constant.with_doubts(Doubt("chosen", place, "a constant; as well fits", (str(named.template),)))


def json_value(value: Any) -> Any:
    """Returns a Struct or a Value as JSON; ABSENT stays. (Any: its class exists only at run time.)"""
    return value if value is ABSENT else _whole(MessageToDict(value))


def _whole(value: Any) -> Any:
    """A Struct holds doubles alone."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _whole(below) for key, below in value.items()}
        case list():
            return [_whole(below) for below in value]
        case _:
            return value


def _is_constant(values: Sequence[Any]) -> bool:
    return len({repr(value) for value in values}) == 1


def _specific(values: Sequence[Any]) -> bool:
    value = next(value for value in values if value is not ABSENT)
    return is_specific(value[0] if isinstance(value, list) else value)


def _forms(name: str, field: Field) -> Iterator[Json]:
    yield name
    if field.is_repeated:
        yield [name]


def _named(field: Field, scope: Scope, samples: Sequence[Sample], values: Sequence[Any], place: str) -> Learned | None:
    found: list[tuple[str, Json]] = []
    for name in (*scope.kinds, *sorted(scope.texts), *client_fields(samples)):
        if all(sample.values.get(name) in (None, []) for sample in samples):
            continue
        found += [(name, form) for form in _forms(name, field) if holds(form, field, scope, samples)][:1]
    if not found:
        return _after_text(field, scope, samples, values, place)
    name, form = found[0]
    return Learned(form, others(place, name, [other for other, _ in found[1:]]), 1)


def _after_text(
    field: Field, scope: Scope, samples: Sequence[Sample], values: Sequence[Any], place: str
) -> Learned | None:
    """Returns a text before a name, such as `models/$model`."""
    if item_of(field).type != FieldDescriptor.TYPE_STRING or field.is_repeated:
        return None
    for name, kind in scope.kinds.items():
        text = next((found for sample in samples if kind == "text" and (found := sample.values.get(name))), None)
        written = next((value for value in values if value is not ABSENT), "")
        if not text or len(text) < 3 or not str(written).endswith(text) or written == text:
            continue
        form = str(written).removesuffix(text) + name
        if holds(form, field, scope, samples):
            return Learned(form, (), 1)
    return None


def _constant(
    field: Field, scope: Scope, samples: Sequence[Sample], values: Sequence[Any], place: str
) -> Learned | None:
    written = [value for value in values if value is not ABSENT]
    if len({repr(value) for value in written}) != 1 or (form := _written(written[0], field)) is None:
        return None
    if holds(form, field, scope, samples):
        once = Doubt("chosen", place, f"the constant {json.dumps(form)}, which is shown once")
        return Learned(form, (once,) if len(samples) == 1 else ())
    if field.is_repeated:
        return None
    names = conditions(scope, samples, [value is not ABSENT for value in values])
    for name in names:
        template: Json = {WITH: name, AS: form}
        if holds(template, field, scope, samples):
            rest = tuple(other for other in names if other != name)
            reason = f"sent where {name} has a value; as well fit"
            return Learned(template, (Doubt("chosen", place, reason, rest),) if rest else (), 1)
    return None


def _written(value: Any, field: Field) -> Json:
    """Returns a value as a template writes it; None: no template can."""
    if isinstance(value, list):
        items = [_written(item, field) for item in value]
        return None if any(item is None for item in items) else items
    if isinstance(value, Message):
        wrapper: Any = value  # its class exists only at run time
        wrapped = field.message_type is not None and field.message_type.full_name in WRAPPERS
        return _written(wrapper.value, field.message_type.fields_by_name["value"]) if wrapped else None
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return None if known is None else str(known.name)
    if isinstance(value, str) and MARK in value:
        return None
    return value if isinstance(value, str | bool | int | float) else None


def _json_text(
    field: Field, scope: Scope, samples: Sequence[Sample], values: Sequence[Any], place: str
) -> Learned | None:
    """Returns the template of a text or bytes that hold a JSON object or a list, in every sample."""
    if field.cpp_type != FieldDescriptor.CPPTYPE_STRING or field.is_repeated:
        return _json_item(field, scope, samples, values, place)
    read: list[Any] = [value if value is ABSENT else _parsed(value) for value in values]
    if any(value is None for value in read):
        return None
    below = [JsonSample(sample.values, value) for sample, value in zip(samples, read, strict=True)]
    learned = find_json(scope, below, place)
    return _checked(learned, {JSON: learned.template}, field, scope, samples, below, place)


def _json_item(
    field: Field, scope: Scope, samples: Sequence[Sample], values: Sequence[Any], place: str
) -> Learned | None:
    """Returns the same for the one item of a repeated field."""
    if not field.is_repeated or field.cpp_type != FieldDescriptor.CPPTYPE_STRING:
        return None
    items: list[Any] = [value if value is ABSENT else value[0] if len(value) == 1 else None for value in values]
    read: list[Any] = [item if item is ABSENT else None if item is None else _parsed(item) for item in items]
    if any(value is None for value in read):
        return None
    below = [JsonSample(sample.values, value) for sample, value in zip(samples, read, strict=True)]
    learned = find_json(scope, below, place)
    return _checked(learned, [{JSON: learned.template}], field, scope, samples, below, place)


def _checked(
    learned: Learned,
    template: Json,
    field: Field,
    scope: Scope,
    samples: Sequence[Sample],
    below: Sequence[JsonSample],
    place: str,
) -> Learned | None:
    """Returns the template of JSON text, if what it makes is at least the same JSON."""
    if learned.open or holds(template, field, scope, samples):
        return msgspec.structs.replace(learned, template=template)
    if rendered(template, field, scope, samples) is None or not shows(learned.template, scope, below):
        return None
    doubt = Doubt("chosen", place, "the recorded JSON has other spaces or another order of keys")
    return msgspec.structs.replace(learned, template=template, doubts=(*learned.doubts, doubt))


def _parsed(value: str | bytes) -> Json:
    """Returns the JSON object or list in a text; None: it holds none."""
    try:
        found: Json = json.loads(value)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None
