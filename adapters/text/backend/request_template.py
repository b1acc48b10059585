"""Renders a request template with the values of one request as JSON.

A string that begins with `$` is replaced by the value of that name, of any type. A name without a value is omitted, and
so is an object that becomes empty. The key `$with` names a value; without that value its object is omitted.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.core.conversation import Json

MARK: Final = "$"
WITH: Final = "$with"


def render(template: Json, values: Mapping[str, Json]) -> Json:
    """Returns the template with its names replaced, or None when nothing remains."""
    match template:
        case str() if template.startswith(MARK):
            return values.get(template)
        case dict():
            if WITH in template and render(template[WITH], values) is None:
                return None
            keys = (key for key in template if key != WITH)
            return {key: value for key in keys if (value := render(template[key], values)) is not None} or None
        case list():
            return [value for item in template if (value := render(item, values)) is not None]
        case _:
            return template


def names_in(template: Json) -> Iterator[str]:
    """Yields every name in the template, with its `$`."""
    match template:
        case str() if template.startswith(MARK):
            yield template
        case dict():
            for value in template.values():
                yield from names_in(value)
        case list():
            for item in template:
                yield from names_in(item)
        case _:
            pass


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Merges the own keys into the base, recursively for nested objects. Any: this is JSON of unknown shape."""
    result = dict(base)
    for key, value in own.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
