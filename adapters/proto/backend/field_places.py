"""Finds for each field of a rendered message the place of its template that made it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from adapters.proto.backend.field_values import Value
from adapters.proto.backend.rendering import Render, Values
from adapters.proto.backend.request_template import RequestTemplate, TemplateCompiler
from adapters.proto.backend.schema import Field
from adapters.proto.backend.template_names import Scope
from gateway.adapter import FieldPlace
from gateway.core.conversation import Json
from gateway.core.notices import Notice


class TracedTemplate(RequestTemplate):
    """The same template; `places` are the fields of the message that it rendered last."""

    def __init__(self, template: RequestTemplate) -> None:
        super().__init__(template.written, template.kind, template.scope)
        self.places: tuple[FieldPlace, ...] = ()
        self._traced = _TracedCompiler().message(template.written, template.kind, template.scope, "request")

    def render(self, values: Values, notices: list[Notice]) -> Message:
        """Returns the message, as the template does."""
        self.places = tuple(_places(self._traced(values, []) or {}, ""))
        return super().render(values, notices)


class _Placed(msgspec.Struct, frozen=True):
    """A value, and the place in the template that made it. (Any: as the constructor of a message takes it.) Two are
    equal by their values, by which neighbours are compared."""

    place: str
    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Placed) and bool(self.value == other.value)


class _TracedCompiler(TemplateCompiler):
    """Compiles a template whose values are rendered with their places."""

    def _field(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        return _traced(super()._field(template, field, scope, place), place)

    def _item(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        render = super()._item(template, field, scope, place)
        return lambda values, notices: [_placed(value, place) for value in render(values, notices) or ()] or None

    def _texts(self, name: str, field: Field, place: str) -> Render:
        render = super()._texts(name, field, place)
        return lambda values, notices: [_Placed(place, value) for value in render(values, notices) or ()] or None

    def _single(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        return _traced(super()._single(template, field, scope, place), place)


def _traced(render: Render, place: str) -> Render:
    return lambda values, notices: None if (value := render(values, notices)) is None else _placed(value, place)


def _placed(value: Value, place: str) -> Value:
    return value if _has_places(value) else _Placed(place, value)


def _has_places(value: Value) -> bool:
    """Returns whether the value is made of values that have their places already. The first one decides for all."""
    match value:
        case _Placed():
            return True
        case Message():
            # A Struct is a Mapping, too.
            return False
        case Mapping():
            return any(_has_places(below) for below in [*value.values()][:1])
        case Sequence() if not isinstance(value, str | bytes):
            return any(_has_places(below) for below in value[:1])
        case _:
            return False


def _places(value: Value, path: str) -> Iterator[FieldPlace]:
    match value:
        case _Placed():
            yield FieldPlace(path, value.place, _readable(value.value))
        case Mapping():
            for name, below in value.items():
                yield from _places(below, f"{path}.{name}" if path else name)
        case _:
            for position, below in enumerate(value):
                yield from _places(below, f"{path}[{position}]")


def _readable(value: Value) -> Json:
    match value:
        case Message():
            described: dict[str, Json] = MessageToDict(value, preserving_proto_field_name=True)
            return described
        case bytes():
            return value.decode("utf-8", "replace")
        case Mapping():
            return {name: _readable(below) for name, below in value.items()}
        case list() | tuple():
            return [_readable(below) for below in value]
        case str() | bool() | int() | float():
            return value
        case _:
            return None
