"""Compiles a request template against a message type, and renders requests with it.

Every name and type is checked once, at start. The result of rendering is what the constructor of the message takes,
because that costs a small part of what the JSON form of protobuf costs.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message

from adapters.proto.backend.field_values import STRUCT, VALUE, Value, converter, fits, is_map, literal, type_name
from adapters.proto.backend.json_shapes import compile_json
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.object_values import value_converter, write_object
from adapters.proto.backend.rendering import Render, Values, each_item, each_value, listed, named
from adapters.proto.backend.schema import Field, MessageType, message_class
from adapters.proto.backend.template_keys import (
    AS,
    BY,
    CASE,
    EACH,
    JSON,
    MARK,
    TOGETHER,
    WITH,
    check_keys,
    check_oneofs,
    find_field,
    joined_fields,
)
from adapters.proto.backend.template_names import FIELD, Scope
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.protobuf.json_struct import NestedTooDeep
from gateway.providers.request_rules import EFFORTS, OFF

OPAQUE: Final = "$opaque"
EFFORT: Final = "$effort"

_NAME_INSIDE: Final = re.compile(r"\$[a-z]")
_NAME_AFTER_TEXT: Final = re.compile(r"([^$]+)(\$[\w.]+)")


class RequestTemplate:
    """One template for one message type. `names` are all names that it uses, with their `$`."""

    def __init__(self, template: Json, kind: MessageType, scope: Scope) -> None:
        """Raises OptionError, with the place in the template."""
        compiler = TemplateCompiler()
        self.written, self.kind, self.scope = template, kind, scope
        self._class = message_class(kind)
        self._render = compiler.message(template, kind, scope, "request")
        self.names = frozenset(compiler.names)
        self.variants = compiler.variants
        self._joined_efforts = _joined_efforts(compiler.efforts)

    def render(self, values: Values, notices: list[Notice]) -> Message:
        """Returns the message of one request, and adds notices of what was changed. Raises InvalidRequest for a value
        that the message cannot hold."""
        try:
            message = self._class(**(self._render(values, notices) or {}))
            if self._joined_efforts and (told := self._joined_efforts.get(values[EFFORT])) is not None:
                notices.append(told)
            return message
        except UnicodeEncodeError as error:
            raise InvalidRequest("The request contains half of a surrogate pair, which is not a character.") from error
        except (TypeError, ValueError) as error:
            raise InvalidRequest("The request has a value that the backend's message cannot hold.") from error

    def try_out(self, values: Values) -> bytes:
        """Returns a trial request. Raises OptionError where a required field has no value."""
        try:
            return self.render(values, []).SerializeToString()
        except (EncodeError, InvalidRequest) as error:
            raise mapping_error("request", f"a trial request cannot be written: {error}") from error

    def parse(self, body: bytes) -> Message:
        """Returns the message that a body holds."""
        return self._class.FromString(body)


class TemplateCompiler:
    """Compiles one template. `names` collects the names that occur, `variants` the variants of each list of items,
    `efforts` the cases of each field for the reasoning effort."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.variants: dict[str, frozenset[str]] = {}
        self.efforts: list[Mapping[str, Json]] = []

    def message(self, template: Json, kind: MessageType, scope: Scope, place: str) -> Render:
        if not isinstance(template, dict):
            raise mapping_error(place, f"{kind.full_name} is a message; write an object")
        condition = self._condition(template, scope, place)
        parts = [
            (key, self._field(value, find_field(key, kind, place), scope, f"{place}.{key}"))
            for key, value in template.items()
            if key != WITH
        ]
        check_oneofs([key for key, _ in parts], kind, place)

        def render(values: Values, notices: list[Notice]) -> Value:
            if condition is not None and values.get(condition) is None:
                notices += [_NOT_RETURNED] if condition == OPAQUE else []
                return None
            made = {key: value for key, part in parts if (value := part(values, notices)) is not None}
            return made if made or not parts else None

        return render

    def _condition(self, template: Mapping[str, Json], scope: Scope, place: str) -> str | None:
        if WITH not in template:
            return None
        name = template[WITH]
        if not isinstance(name, str):
            raise mapping_error(f"{place}.{WITH}", 'write one name, such as "$system"')
        self._name(name, scope, f"{place}.{WITH}")
        return name

    def _field(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        if not field.is_repeated:
            return self._single(template, field, scope, place)
        if is_map(field):
            return self._map(template, field, scope, place)
        if isinstance(template, list):
            return listed([self._single(item, field, scope, f"{place}[{n}]") for n, item in enumerate(template)])
        if isinstance(template, dict) and EACH in template:
            return self._each(template, field, scope, place)
        if isinstance(template, str) and template in scope.texts:
            self.names.add(template)
            convert = converter("text", field, template)
            if convert is None:
                raise mapping_error(place, f"{template} is a list of text; the field is of {type_name(field)}")
            return each_value(template, convert)
        if isinstance(template, str) and template.startswith(MARK):
            self._name(template, scope, place)
        if isinstance(template, dict):
            check_keys(template, (EACH,), place)
        raise mapping_error(place, f"the field is repeated; write a list or {EACH}")

    def _map(self, template: Json, map_field: Field, scope: Scope, place: str) -> Render:
        entry = map_field.message_type
        if entry.fields_by_name["key"].type != FieldDescriptor.TYPE_STRING:
            raise mapping_error(place, "only maps with keys of text can be written")
        if isinstance(template, str) and template.startswith(MARK):
            return self._leaf(template, map_field, scope, place)
        if not isinstance(template, dict):
            raise mapping_error(place, "the field is a map; write an object")
        field = entry.fields_by_name["value"]
        parts = [(key, self._single(value, field, scope, f"{place}.{key}")) for key, value in template.items()]
        return lambda values, notices: (
            {key: value for key, part in parts if (value := part(values, notices)) is not None} or None
        )

    def _each(self, template: Mapping[str, Json], field: Field, scope: Scope, place: str) -> Render:
        name = template[EACH]
        if not isinstance(name, str) or name not in scope.items:
            raise unknown_name(f"{place}.{EACH}", f"there is no list {name!r} here", str(name), scope.items)
        self.names.add(name)
        variants = scope.items[name]
        if AS in template or not variants.by:
            check_keys(template, (EACH, AS), place)
            if AS not in template:
                raise mapping_error(place, f"{name} needs the key {AS!r}")
            inner = self._single(template[AS], field, variants.all(), f"{place}.{AS}")
            return each_item(name, None, {"": inner}, ())
        if template.get(BY) != variants.by:
            raise mapping_error(f"{place}.{BY}", f"the items of {name} differ by {variants.by}")
        check_keys(template, (EACH, BY, TOGETHER, *variants.scopes), place)
        joined = joined_fields(template, field, place)
        renders = {
            word: self._single(template[word], field, inner, f"{place}.{word}")
            for word, inner in variants.scopes.items()
            if word in template
        }
        self.variants[name] = self.variants.get(name, frozenset()) | renders.keys()
        if missing := [word for word in variants.required if word not in renders]:
            raise mapping_error(place, f"{name} needs the variant {missing[0]!r}")
        return each_item(name, variants.by, renders, joined)

    def _single(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        match template:
            case str() if template.startswith(MARK):
                return self._leaf(template, field, scope, place)
            case str() if (mixed := _NAME_AFTER_TEXT.fullmatch(template)) is not None:
                return self._mixed(mixed[1], mixed[2], field, scope, place)
            case dict() if CASE in template:
                return self._case(template, field, scope, place)
            case dict() if JSON in template:
                return self._json(template, field, scope, place)
            case dict() if WITH in template and AS in template:
                return self._value_with(template, field, scope, place)
            case dict() if field.message_type is not None and field.message_type.full_name in (STRUCT, VALUE):
                return self._struct(template, field, scope, place)
            case _ if field.message_type is None or not isinstance(template, dict):
                return _constant(template, field, place)
            case _:
                return self.message(template, field.message_type, scope, place)

    def _leaf(self, name: str, field: Field, scope: Scope, place: str) -> Render:
        self._name(name, scope, place)
        kind = scope.kind(name)
        convert = None if kind is None else value_converter(kind, field, name)
        if convert is None:
            raise mapping_error(place, f"{name} is {scope.described(name)}; the field is of {type_name(field)}")
        return named(name, convert)

    def _mixed(self, text: str, name: str, field: Field, scope: Scope, place: str) -> Render:
        self._name(name, scope, place)
        if scope.kind(name) != "text" or converter("text", field, name) is None:
            raise mapping_error(place, f"text stands before a text only; {name} is {scope.described(name)}")
        convert = converter("text", field, name)
        assert convert is not None
        return named(name, lambda value, notices: convert(text + value, notices))

    def _struct(self, template: Mapping[str, Json], field: Field, scope: Scope, place: str) -> Render:
        shape = compile_json(dict(template), scope, place, self._name)
        in_value = field.message_type.full_name == VALUE
        kind = field.message_type.fields_by_name["struct_value"].message_type if in_value else field.message_type

        def render(values: Values, notices: list[Notice]) -> Value:
            filled = shape(values)
            try:
                made = write_object(filled, kind, notices) if isinstance(filled, dict) else None
            except NestedTooDeep:
                raise InvalidRequest("A JSON object nests deeper than the backend's message can hold.") from None
            return {"struct_value": made} if in_value and made is not None else made

        return render

    def _name(self, name: str, scope: Scope, place: str) -> None:
        if not scope.knows(name):
            raise unknown_name(place, f"there is no name {name!r} here", name, [*scope.names(), f"{FIELD}NAME"])
        self.names.add(name)

    def _case(self, template: Mapping[str, Json], field: Field, scope: Scope, place: str) -> Render:
        name = template[CASE]
        words = scope.cases.get(name, ()) if isinstance(name, str) else ()
        if not isinstance(name, str) or not words:
            raise unknown_name(f"{place}.{CASE}", f"there are no cases of {name!r}", str(name), scope.cases)
        check_keys(template, (CASE, *words), place)
        self.names.add(name)
        renders = {
            word: self._single(value, field, scope, f"{place}.{word}")
            for word, value in template.items()
            if word != CASE
        }
        self.variants[name] = self.variants.get(name, frozenset()) | renders.keys()
        if name == EFFORT:
            self.efforts.append(template)

        def render(values: Values, notices: list[Notice]) -> Value:
            chosen = renders.get(word := values[name])
            if chosen is None and name == EFFORT and word is not None:
                notices.append(_no_effort(word))
            return None if chosen is None else chosen(values, notices)

        return render

    def _value_with(self, template: Mapping[str, Json], field: Field, scope: Scope, place: str) -> Render:
        check_keys(template, (WITH, AS), place)
        name = self._condition(template, scope, place)
        inner = self._single(template[AS], field, scope, f"{place}.{AS}")

        def render(values: Values, notices: list[Notice]) -> Value:
            if values.get(name or "") is not None:
                return inner(values, notices)
            notices += [_NOT_RETURNED] if name == OPAQUE and inner(values, []) is not None else []
            return None

        return render

    def _json(self, template: Mapping[str, Json], field: Field, scope: Scope, place: str) -> Render:
        check_keys(template, (JSON,), place)
        if field.cpp_type != FieldDescriptor.CPPTYPE_STRING:
            raise mapping_error(place, f"JSON is text; the field is of {type_name(field)}")
        filled = compile_json(template[JSON], scope, f"{place}.{JSON}", self._name)
        as_bytes = field.type == FieldDescriptor.TYPE_BYTES

        def render(values: Values, notices: list[Notice]) -> Value:
            if (value := filled(values)) is None:
                return None
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            return text.encode() if as_bytes else text

        return render


def _constant(template: Json, field: Field, place: str) -> Render:
    if isinstance(template, dict):
        check_keys(template, (CASE, JSON), place)
    if isinstance(template, str) and _NAME_INSIDE.search(template):
        raise mapping_error(place, "a name cannot stand inside a text")
    if field.enum_type is not None and isinstance(template, str) and template not in field.enum_type.values_by_name:
        names = field.enum_type.values_by_name
        raise unknown_name(place, f"{field.enum_type.full_name} has no value {template!r}", template, names)
    if not fits(template, field):
        raise mapping_error(place, f"{json.dumps(template)} is no value of {type_name(field)}")
    value = literal(template, field)
    return lambda values, notices: value


def _joined_efforts(cases: Sequence[Mapping[str, Json]]) -> dict[str, Notice]:
    """Returns a notice for each effort that has the values of another one in all fields: none for the one nearest to
    `medium`, as which the others are sent, unless `none` is among them."""
    joined: dict[str, list[str]] = {}
    for effort in EFFORTS:
        if any(effort in case for case in cases):
            joined.setdefault(json.dumps([case.get(effort) for case in cases], sort_keys=True), []).append(effort)
    told: dict[str, Notice] = {}
    for efforts in joined.values():
        middle = min(efforts, key=lambda effort: abs(EFFORTS.index(effort) - EFFORTS.index("medium")))
        told |= {effort: _joined_effort(effort, middle) for effort in efforts if effort != middle}
        if OFF in efforts and middle != OFF:
            told[middle] = _joined_effort(middle, OFF)
    return told


def _joined_effort(effort: str, other: str) -> Notice:
    detail = f"the reasoning effort {effort!r} is sent with the value of {other!r}"
    return Notice("encode", "changed", "EFFORT_CHANGED", detail, level="debug")


def _no_effort(word: object) -> Notice:
    detail = f"the backend has no value for the reasoning effort {str(word)[:40]!r}"
    return Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="warning")


_NOT_RETURNED: Final = Notice(
    "encode", "dropped", "REASONING_NOT_SENT", "reasoning without state of the backend", level="debug"
)
