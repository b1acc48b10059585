"""Checks whether a JSON value fits the schema that a client asked for.

The keywords are those that providers accept in structured outputs: types, `enum`, `const`, objects, arrays, bounds,
`anyOf`, `oneOf`, `allOf`, and `$ref` inside the document (JSON Schema 2020-12). Other keywords forbid nothing here.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from gateway.core.conversation import Json, JsonObject

# Schemas may refer to each other without end, and each reference may fan out.
_MOST_STEPS: Final = 100_000
_DEEPEST: Final = 200
# So many characters are compared, or looked for, as fast as a step is made.
_STEP_CHARACTERS: Final = 64
# What is looked through for each value.
_LISTS: Final = ("enum", "required", "type")


def fits(value: Json, schema: Json) -> bool:
    """Returns whether the value fits the schema. Also False when the check exceeds its limit of steps or levels."""
    try:
        return _Check(schema).fits(value, schema, 0)
    except _TooMuchError:
        return False


class _TooMuchError(Exception):
    """The check exceeds the steps or levels that a meaningful schema needs."""


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or float(str(value)).is_integer()),
}


class _Check:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._steps = 0

    def fits(self, value: Json, schema: Json, level: int) -> bool:
        self._step(1, level)
        if not isinstance(schema, dict):
            return schema is not False
        self._step(sum(len(listed) for key in _LISTS if isinstance(listed := schema.get(key), list)), level)
        return (
            _has_type(value, schema.get("type"))
            and ("const" not in schema or self._same(value, schema["const"], level))
            and self._is_listed(value, schema.get("enum"), level)
            and _is_within(value, schema)
            and self._combined(value, schema, level + 1)
            and self._members(value, schema, level + 1)
            and self._elements(value, schema, level + 1)
        )

    def _step(self, count: int, level: int) -> None:
        self._steps += count
        if self._steps > _MOST_STEPS or level > _DEEPEST:
            raise _TooMuchError

    def _combined(self, value: Json, schema: JsonObject, level: int) -> bool:
        if isinstance(reference := schema.get("$ref"), str) and not self.fits(value, self._find(reference), level):
            return False
        every, some, one = (schema.get(key) for key in ("allOf", "anyOf", "oneOf"))
        return (
            (not isinstance(every, list) or all(self.fits(value, part, level) for part in every))
            and (not isinstance(some, list) or any(self.fits(value, part, level) for part in some))
            and (not isinstance(one, list) or sum(self.fits(value, part, level) for part in one) == 1)
        )

    def _find(self, reference: str) -> Json:
        """What a reference inside the document means; one that leads nowhere, or outside, forbids nothing."""
        self._step(reference.count("/") + len(reference) // _STEP_CHARACTERS, 0)
        found = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key, True) if isinstance(found, dict) else True
        return found if reference.startswith("#") else True

    def _members(self, value: Json, schema: JsonObject, level: int) -> bool:
        if not isinstance(value, dict):
            return True
        required, properties = schema.get("required"), schema.get("properties")
        if isinstance(required, list) and not all(key in value for key in required if isinstance(key, str)):
            return False
        known = properties if isinstance(properties, dict) else {}
        # `patternProperties` is not read, so which of the other keys it allows is unknown: all of them.
        others = True if "patternProperties" in schema else schema.get("additionalProperties", True)
        return all(self.fits(member, known.get(key, others), level) for key, member in value.items())

    def _is_listed(self, value: Json, listed: Json, level: int) -> bool:
        return not isinstance(listed, list) or any(self._same(value, one, level) for one in listed)

    def _same(self, value: Json, other: Json, level: int) -> bool:
        """To JSON 1 and 1.0 are the same, 1 and true are not."""
        self._step(_weight(other), level)
        return value == other and _written(value) == _written(other)

    def _elements(self, value: Json, schema: JsonObject, level: int) -> bool:
        if not isinstance(value, list):
            return True
        first = schema.get("prefixItems")
        places = first if isinstance(first, list) else []
        rest = schema.get("items", True)
        return all(
            self.fits(element, places[at] if at < len(places) else rest, level) for at, element in enumerate(value)
        )


def _has_type(value: Json, kind: Json) -> bool:
    names = kind if isinstance(kind, list) else [kind]
    known = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    return not known or any(is_one(value) for is_one in known)


def _weight(value: Json) -> int:
    """The steps that it may take to compare something with the value, beside the one for the value itself."""
    if isinstance(value, list):
        return len(value) + sum(map(_weight, value))
    if isinstance(value, dict):
        return len(value) + sum(map(_weight, value)) + sum(map(_weight, value.values()))
    return len(value) // _STEP_CHARACTERS if isinstance(value, str) else 0


def _written(value: Json) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Json) -> Json:
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


_BOUNDS: Final[tuple[tuple[str, Callable[[float, float], bool]], ...]] = (
    ("minimum", lambda size, bound: size >= bound),
    ("maximum", lambda size, bound: size <= bound),
    ("exclusiveMinimum", lambda size, bound: size > bound),
    ("exclusiveMaximum", lambda size, bound: size < bound),
)
_LENGTHS: Final[Mapping[type, tuple[str, str]]] = {
    str: ("minLength", "maxLength"),
    list: ("minItems", "maxItems"),
    dict: ("minProperties", "maxProperties"),
}


def _is_within(value: Json, schema: JsonObject) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        bounds = ((schema.get(key), holds) for key, holds in _BOUNDS)
        return all(
            holds(value, bound)
            for bound, holds in bounds
            if isinstance(bound, int | float) and not isinstance(bound, bool)
        )
    if isinstance(value, str | list | dict):
        least, most = (schema.get(key) for key in _LENGTHS[type(value)])
        size = len(value)
        return not (isinstance(least, int) and size < least) and not (isinstance(most, int) and size > most)
    return True
