"""Compiles a request template against a message type, and renders requests with it.

Every name and type is checked once, at start. The result of rendering is what the constructor of the message takes,
because that costs a small part of what the JSON form of protobuf costs.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message

from adapters.proto.backend.conversation_values import unsent_turn
from adapters.proto.backend.effort_notices import EffortNotices
from adapters.proto.backend.field_values import (
    STRUCT,
    VALUE,
    Value,
    converter,
    fits,
    is_map,
    literal,
    no_value,
    type_name,
)
from adapters.proto.backend.json_shapes import compile_json
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.object_values import value_converter, write_object
from adapters.proto.backend.rendering import Condition, Render, Values, each_item, each_value, listed, named, only
from adapters.proto.backend.schema import Field, MessageType, message_class
from adapters.proto.backend.template_keys import (
    AS,
    CALL,
    CASE,
    CONDITIONS,
    EACH,
    JSON,
    MARK,
    NAME_AFTER_TEXT,
    NAME_INSIDE,
    TOGETHER,
    WITH,
    check_keys,
    check_oneofs,
    check_single_value,
    find_field,
    is_value_with,
    joined_fields,
    misplaced,
    misplaced_each,
    nearest_of,
)
from adapters.proto.backend.template_names import Scope
from adapters.proto.backend.used_names import CALLS, EFFORT, TURNS, UsedNames, Written
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.protobuf.json_struct import NestedTooDeep

OPAQUE: Final = "$opaque"
# Compiles the inner part of a form: as one value, or as the items of a list.
Compile: TypeAlias = Callable[[Written], Render]


class RequestTemplate:
    """One template for one message type. `names` are the names that it sends, with their `$`, and `asked` those in its
    conditions."""

    def __init__(self, template: Json, kind: MessageType, scope: Scope) -> None:
        """Raises OptionError, with the place in the template."""
        compiler = TemplateCompiler()
        self.written, self.kind, self.scope = template, kind, scope
        self._class = message_class(kind)
        self._render = compiler.message(template, kind, scope, "request")
        self.used = compiler.used
        self.names, self.asked = frozenset(compiler.used.names), frozenset(compiler.used.asked)
        self.variants = compiler.used.variants
        self._efforts = EffortNotices(compiler.used.efforts) if compiler.used.efforts else None

    def render(self, values: Values, notices: list[Notice]) -> Message:
        """Returns the message of one request, and adds notices of what was changed. Raises InvalidRequest for a value
        that the message cannot hold."""
        try:
            message = self._class(**(self._render(values, notices) or {}))
            if self._efforts is not None and (told := self._efforts.of(values[EFFORT])) is not None:
                notices.append(told)
            return message
        except UnicodeEncodeError as error:
            raise InvalidRequest("The request contains half of a surrogate pair, which is not a character.") from error
        except (TypeError, ValueError) as error:
            raise InvalidRequest("The request has a value that the backend's message cannot hold.") from error

    def try_out(self, values: Values, notices: list[Notice]) -> bytes:
        """Returns a trial request, and adds notices. Raises OptionError where a required field has no value."""
        try:
            return self.render(values, notices).SerializeToString()
        except (EncodeError, InvalidRequest) as error:
            raise mapping_error("request", f"a trial request cannot be written: {error}") from error

    def parse(self, body: bytes) -> Message:
        """Returns the message that a body holds."""
        return self._class.FromString(body)


class TemplateCompiler:
    """Compiles one template. `used` collects the names that occur."""

    def __init__(self) -> None:
        self.used = UsedNames()
        # The scopes of the fields that get state.
        self._states: list[Scope] = []

    def message(self, template: Json, kind: MessageType, scope: Scope, place: str) -> Render:
        if not isinstance(template, dict):
            raise mapping_error(place, f"{kind.full_name} is a message; write an object")
        condition = self.used.condition(template, scope, place)
        first = len(self._states)
        parts = [
            (key, self._field(value, find_field(key, kind, place), scope, f"{place}.{key}"))
            for key, value in template.items()
            if key not in CONDITIONS
        ]
        check_oneofs(template, kind, place)

        def render(values: Values, notices: list[Notice]) -> Value:
            made = {key: value for key, part in parts if (value := part(values, notices)) is not None}
            return made if made or not parts else None

        return render if condition is None else self._provided(condition, scope, render, first)

    def _provided(self, condition: Condition, scope: Scope, render: Render, first: int) -> Render:
        """Renders a part where its condition holds. Reasoning that it leaves out for its lack of state is told, unless
        a part of the template is for reasoning without state; and so is state whose one field, of those from `first`,
        is in the part."""
        of_reasoning = OPAQUE in condition.needed and "$arguments" not in scope.kinds
        of_state = any(one is scope for one in self._states[first:])

        def provided(values: Values, notices: list[Notice]) -> Value:
            if condition.holds(values):
                return render(values, notices)
            if of_reasoning and values.get(OPAQUE) is None and OPAQUE not in self.used.absent:
                reasons = values.get("$kind") == "reasoning" or values.get("$reasoning") is not None
                notices += [_NOT_RETURNED] if reasons else []
            if of_state and values.get(OPAQUE) is not None and sum(one is scope for one in self._states) == 1:
                notices.append(_STATE_LEFT_OUT)
            return None

        return provided

    def _field(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        if not field.is_repeated:
            return self._single(template, field, scope, place)
        if is_map(field):
            return self._map(template, field, scope, place)
        if isinstance(template, str) and template in scope.texts:
            return self._texts(template, field, place)
        if isinstance(template, list):
            return self._items(template, field, scope, place)
        if isinstance(template, dict) and (EACH in template or CASE in template or is_value_with(template)):
            return self._items(template, field, scope, place)
        if isinstance(template, str) and template.startswith(MARK):
            self.used.use(template, scope, place)
        if isinstance(template, dict):
            check_single_value(template, place)
        raise mapping_error(place, f"the field is repeated; write a list, {EACH}, {CASE}, or {WITH} and {AS!r}")

    def _items(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        """Compiles what becomes items of a repeated field: one form, or a list of forms, which render a list."""
        if not isinstance(template, list):
            return self._item(template, field, scope, place)
        return listed([self._item(one, field, scope, f"{place}[{n}]") for n, one in enumerate(template)])

    def _item(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        def items(written: Written) -> Render:
            return self._items(written.template, field, written.scope, written.place)

        match template:
            case dict() if EACH in template:
                forms = self.used.each(template, scope, place, TOGETHER)
                joined = joined_fields(template, field, place)
                renders = {word: items(one) for word, one in forms.written.items()}
                lost = unsent_turn if forms.name == TURNS else None
                return each_item(forms.name, forms.by, renders, joined, lost)
            case dict() if CASE in template:
                return self._case(template, scope, place, items)
            case dict() if is_value_with(template):
                return self._value_with(template, scope, place, items)
            case str() if template in scope.texts:
                return self._texts(template, field, place)
            case list():
                raise mapping_error(place, "a list cannot stand in a list; write its items beside the others")
            case _:
                return only(self._single(template, field, scope, place))

    def _texts(self, name: str, field: Field, place: str) -> Render:
        self.used.names.add(name)
        convert = converter("text", field, name)
        if convert is None:
            raise mapping_error(place, f"{name} is a list of text; the field is of {type_name(field)}")
        return each_value(name, convert)

    def _map(self, template: Json, map_field: Field, scope: Scope, place: str) -> Render:
        def entries(written: Written) -> Render:
            return self._map(written.template, map_field, written.scope, written.place)

        entry = map_field.message_type
        if entry.fields_by_name["key"].type != FieldDescriptor.TYPE_STRING:
            raise mapping_error(place, "only maps with keys of text can be written")
        if isinstance(template, str) and template.startswith(MARK):
            return self._leaf(template, map_field, scope, place)
        if not isinstance(template, dict):
            raise mapping_error(place, "the field is a map; write an object")
        if CASE in template:
            return self._case(template, scope, place, entries)
        if is_value_with(template):
            return self._value_with(template, scope, place, entries)
        if misplaced := [key for key in (EACH, CALL, JSON) if key in template]:
            raise mapping_error(f"{place}.{misplaced[0]}", "it cannot stand in a map")
        condition = self.used.condition(template, scope, place)
        field = entry.fields_by_name["value"]
        first = len(self._states)
        parts = [
            (key, self._single(value, field, scope, f"{place}.{key}"))
            for key, value in template.items()
            if key not in CONDITIONS
        ]

        def render(values: Values, notices: list[Notice]) -> Value:
            return {key: value for key, part in parts if (value := part(values, notices)) is not None} or None

        return render if condition is None else self._provided(condition, scope, render, first)

    def _single(self, template: Json, field: Field, scope: Scope, place: str) -> Render:
        def single(written: Written) -> Render:
            return self._single(written.template, field, written.scope, written.place)

        match template:
            case str() if template.startswith(MARK):
                return self._leaf(template, field, scope, place)
            case str() if (mixed := NAME_AFTER_TEXT.fullmatch(template)) is not None:
                return self._mixed(mixed[1], mixed[2], field, scope, place)
            case dict() if EACH in template:
                raise misplaced_each(field, place)
            case dict() if CASE in template:
                return self._case(template, scope, place, single)
            case dict() if CALL in template:
                call = single(self.used.call(template, scope, place))
                return lambda values, notices: call({**values, **held[0]}, notices) if (held := values[CALLS]) else None
            case dict() if JSON in template:
                return self._json(template, field, scope, place)
            case dict() if is_value_with(template):
                return self._value_with(template, scope, place, single)
            case dict() if field.message_type is not None and field.message_type.full_name in (STRUCT, VALUE):
                return self._struct(template, field, scope, place)
            case _ if field.message_type is None or not isinstance(template, dict):
                return _constant(template, field, place)
            case _:
                return self.message(template, field.message_type, scope, place)

    def _leaf(self, name: str, field: Field, scope: Scope, place: str) -> Render:
        fitting = [other for other, kind in scope.kinds.items() if value_converter(kind, field, other) is not None]
        self.used.use(name, scope, place, fitting)
        if name == OPAQUE:
            self._states.append(scope)
        kind = scope.kind(name)
        convert = None if kind is None else value_converter(kind, field, name)
        if convert is None:
            nearest = f"; here stand {', '.join(fitting)}" if fitting else ""
            reason = f"{name} is {scope.described(name)}; the field is of {type_name(field)}"
            raise mapping_error(place, f"{reason}{nearest}")
        return named(name, convert)

    def _mixed(self, text: str, name: str, field: Field, scope: Scope, place: str) -> Render:
        self.used.use(name, scope, place)
        if scope.kind(name) != "text" or converter("text", field, name) is None:
            raise mapping_error(place, f"text stands before a text only; {name} is {scope.described(name)}")
        convert = converter("text", field, name)
        assert convert is not None
        return named(name, lambda value, notices: convert(text + value, notices))

    def _struct(self, template: Mapping[str, Json], field: Field, scope: Scope, place: str) -> Render:
        shape = compile_json(dict(template), scope, place, self.used)
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

    def _case(self, template: Mapping[str, Json], scope: Scope, place: str, compiled: Compile) -> Render:
        forms = self.used.case(template, scope, place)
        renders = {word: compiled(written) for word, written in forms.written.items()}

        def render(values: Values, notices: list[Notice]) -> Value:
            chosen = renders.get(values[forms.name])
            return None if chosen is None else chosen(values, notices)

        return render

    def _value_with(self, template: Mapping[str, Json], scope: Scope, place: str, compiled: Compile) -> Render:
        check_keys(template, (*CONDITIONS, AS), place)
        condition = self.used.condition(template, scope, place)
        assert condition is not None
        first = len(self._states)
        render = compiled(Written(template[AS], scope, f"{place}.{AS}"))
        return self._provided(condition, scope, render, first)

    def _json(self, template: Mapping[str, Json], field: Field, scope: Scope, place: str) -> Render:
        check_keys(template, (JSON,), place)
        convert = converter("text", field, JSON)
        if convert is None:
            raise misplaced(
                JSON, place, f"JSON is text, and the field is of {type_name(field)}; write {nearest_of(field)}"
            )
        filled = compile_json(template[JSON], scope, f"{place}.{JSON}", self.used, keeps_empty=True)

        def render(values: Values, notices: list[Notice]) -> Value:
            if (value := filled(values)) is None:
                return None
            return convert(json.dumps(value, ensure_ascii=False, separators=(",", ":")), notices)

        return render


def _constant(template: Json, field: Field, place: str) -> Render:
    if isinstance(template, dict):
        check_keys(template, (*CONDITIONS, CASE, CALL, JSON), place)
        if condition := next((key for key in CONDITIONS if key in template), None):
            raise mapping_error(place, f"{condition} needs the key {AS!r}: the field is of {type_name(field)}")
    if isinstance(template, str) and NAME_INSIDE.search(template):
        raise mapping_error(place, "a name cannot stand inside a text")
    if field.enum_type is not None and isinstance(template, str) and template not in field.enum_type.values_by_name:
        names = field.enum_type.values_by_name
        raise unknown_name(place, f"{field.enum_type.full_name} has no value {template!r}", template, names)
    if not fits(template, field):
        raise mapping_error(place, no_value(template, field))
    value = literal(template, field)
    return lambda values, notices: value


_NOT_RETURNED: Final = Notice(
    "encode", "dropped", "REASONING_NOT_SENT", "reasoning without state of the backend", level="debug"
)
_STATE_LEFT_OUT: Final = Notice(
    "encode", "dropped", "REASONING_NOT_SENT", "state whose part of the message has a condition", level="debug"
)
