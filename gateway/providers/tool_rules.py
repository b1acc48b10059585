"""Describes, as data, which functions a provider accepts among the tools of a request."""

from typing import Literal

import msgspec


class ToolRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider demands of the functions that are offered to it; the default demands nothing.

    - `parameters`: `required` where a function must have a schema, if only that of an empty object.
    - `root`: `object` where that schema must be of type `object`, without `anyOf`, `oneOf` or `allOf` beside the type.
    - `nested`: `complete` where each object in it must list its `properties` and each array must say its `items`.
    - `names`: `unique` where two functions must not have the same name.
    - `most_strict`: how many functions may be strict; null: any number.
    """

    parameters: Literal["optional", "required"] = "optional"
    root: Literal["any", "object"] = "any"
    nested: Literal["any", "complete"] = "any"
    names: Literal["any", "unique"] = "any"
    most_strict: int | None = None


NO_RULES = ToolRules()
