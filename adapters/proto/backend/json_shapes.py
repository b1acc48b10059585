"""Compiles the part of a request template that becomes JSON, in a text or in a Struct, and renders it.

A name without a value is left out, and so is an object that becomes empty.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.rendering import Values
from adapters.proto.backend.template_keys import AS, EACH, MARK, WITH
from adapters.proto.backend.template_names import Scope
from gateway.core.conversation import Json

JsonRender: TypeAlias = Callable[[Values], Json]
# Checks a name in a scope, with the place for an error, and records that the template uses it.
UseName: TypeAlias = Callable[[str, Scope, str], None]

_LIST_KEYS: Final = (EACH, AS)


def compile_json(shape: Json, scope: Scope, place: str, use: UseName) -> JsonRender:
    """Returns the renderer of a JSON value. Raises OptionError, with the place in the template."""
    match shape:
        case str() if shape.startswith(MARK):
            return _name(shape, scope, place, use)
        case dict() if EACH in shape:
            return _each(shape, scope, place, use)
        case dict():
            return _object(shape, scope, place, use)
        case list():
            items = [compile_json(below, scope, f"{place}[{n}]", use) for n, below in enumerate(shape)]
            return lambda values: [value for item in items if (value := item(values)) is not None]
        case _:
            return lambda values: shape


def _name(name: str, scope: Scope, place: str, use: UseName) -> JsonRender:
    use(name, scope, place)
    if scope.kind(name) in (None, "bytes") and name not in scope.texts:
        raise mapping_error(place, f"{name} is {scope.described(name)}, which is no JSON")
    return lambda values: values.get(name)


def _object(shape: Mapping[str, Json], scope: Scope, place: str, use: UseName) -> JsonRender:
    condition = None if WITH not in shape else compile_json(shape[WITH], scope, f"{place}.{WITH}", use)
    members = {key: compile_json(below, scope, f"{place}.{key}", use) for key, below in shape.items() if key != WITH}

    def render(values: Values) -> Json:
        if condition is not None and condition(values) is None:
            return None
        return {key: value for key, member in members.items() if (value := member(values)) is not None} or None

    return render


def _each(shape: Mapping[str, Json], scope: Scope, place: str, use: UseName) -> JsonRender:
    for key in shape:
        if key not in _LIST_KEYS:
            raise unknown_name(f"{place}.{key}", f"unknown key {key!r}", key, _LIST_KEYS)
    name = shape[EACH]
    if not isinstance(name, str) or name not in scope.items:
        raise unknown_name(f"{place}.{EACH}", f"there is no list {name!r} here", str(name), scope.items)
    if AS not in shape:
        raise mapping_error(place, f"{name} needs the key {AS!r}")
    use(name, scope, f"{place}.{EACH}")
    item = compile_json(shape[AS], scope.items[name].all(), f"{place}.{AS}", use)

    def render(values: Values) -> Json:
        made = [item({**values, **one}) for one in values.get(name) or ()]
        return [value for value in made if value is not None] or None

    return render
