"""Compiles the part of a request template that becomes JSON, in a text or in a Struct, and renders it.

A name without a value is left out, and so is an object that becomes empty, unless it is the whole value.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.rendering import Values
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
    is_value_with,
)
from adapters.proto.backend.template_names import Scope
from adapters.proto.backend.used_names import CALLS, UsedNames
from gateway.core.conversation import Json

JsonRender: TypeAlias = Callable[[Values], Json]
ItemsRender: TypeAlias = Callable[[Values], list[Json]]


def compile_json(shape: Json, scope: Scope, place: str, used: UsedNames, *, keeps_empty: bool = False) -> JsonRender:
    """Returns the renderer of a JSON value. `keeps_empty`: an object whose names all lack a value is an empty one.
    Raises OptionError, with the place in the template."""
    match shape:
        case str() if shape.startswith(MARK):
            return _name(shape, scope, place, used)
        case str() if NAME_INSIDE.search(shape):
            return _mixed(shape, scope, place, used)
        case dict() if EACH in shape:
            items = _each(shape, scope, place, used)
            return lambda values: items(values) or None
        case dict() if JSON in shape:
            raise mapping_error(place, f"{JSON} cannot stand in JSON, where a value stands for itself")
        case dict() if CASE in shape:
            return _case(shape, scope, place, used, keeps_empty=keeps_empty)
        case dict() if CALL in shape:
            call = used.call(shape, scope, place)
            made = compile_json(call.template, call.scope, call.place, used, keeps_empty=keeps_empty)
            return lambda values: made({**values, **held[0]}) if (held := values[CALLS]) else None
        case dict() if is_value_with(shape) and not shape.keys() - {*CONDITIONS, AS}:
            condition = used.condition(shape, scope, place)
            value = compile_json(shape[AS], scope, f"{place}.{AS}", used, keeps_empty=keeps_empty)
            return lambda values: value(values) if condition is None or condition.holds(values) else None
        case dict():
            return _object(shape, scope, place, used, keeps_empty=keeps_empty)
        case list():
            return _items(shape, scope, place, used)
        case _:
            return lambda values: shape


def _name(name: str, scope: Scope, place: str, used: UsedNames) -> JsonRender:
    used.use(name, scope, place)
    if scope.kind(name) in (None, "bytes") and name not in scope.texts:
        raise mapping_error(place, f"{name} is {scope.described(name)}, which is no JSON")
    return lambda values: values.get(name)


def _mixed(text: str, scope: Scope, place: str, used: UsedNames) -> JsonRender:
    parts = NAME_AFTER_TEXT.fullmatch(text)
    if parts is None:
        raise mapping_error(place, "a name cannot stand inside a text, other than at its end")
    before, name = parts.groups()
    used.use(name, scope, place)
    if scope.kind(name) != "text":
        raise mapping_error(place, f"text stands before a text only; {name} is {scope.described(name)}")
    return lambda values: None if (value := values.get(name)) is None else before + value


def _object(shape: Mapping[str, Json], scope: Scope, place: str, used: UsedNames, *, keeps_empty: bool) -> JsonRender:
    condition = used.condition(shape, scope, place)
    members = {
        key: compile_json(below, scope, f"{place}.{key}", used) for key, below in shape.items() if key not in CONDITIONS
    }

    def render(values: Values) -> Json:
        if condition is not None and not condition.holds(values):
            return None
        made: dict[str, Json] = {key: value for key, member in members.items() if (value := member(values)) is not None}
        return made if made or keeps_empty else None

    return render


def _items(shape: Json, scope: Scope, place: str, used: UsedNames) -> ItemsRender:
    """Compiles the items of an array: an `$each` in it gives several."""
    if isinstance(shape, list):
        renders = [_item(below, scope, f"{place}[{n}]", used) for n, below in enumerate(shape)]
        return lambda values: [value for render in renders for value in render(values)]
    return _item(shape, scope, place, used)


def _item(shape: Json, scope: Scope, place: str, used: UsedNames) -> ItemsRender:
    if isinstance(shape, dict) and EACH in shape:
        return _each(shape, scope, place, used)
    single = compile_json(shape, scope, place, used)
    return lambda values: [] if (value := single(values)) is None else [value]


def _each(shape: Mapping[str, Json], scope: Scope, place: str, used: UsedNames) -> ItemsRender:
    forms = used.each(shape, scope, place)
    name, by = forms.name, forms.by
    renders = {word: _items(form.template, form.scope, form.place, used) for word, form in forms.written.items()}

    def render(values: Values) -> list[Json]:
        made: list[Json] = []
        for one in values.get(name) or ():
            chosen = renders.get("" if by is None else one[by])
            made += [] if chosen is None else chosen({**values, **one})
        return made

    return render


def _case(shape: Mapping[str, Json], scope: Scope, place: str, used: UsedNames, *, keeps_empty: bool) -> JsonRender:
    forms = used.case(shape, scope, place)
    renders = {
        word: compile_json(form.template, form.scope, form.place, used, keeps_empty=keeps_empty)
        for word, form in forms.written.items()
    }
    return lambda values: None if (chosen := renders.get(values[forms.name])) is None else chosen(values)
