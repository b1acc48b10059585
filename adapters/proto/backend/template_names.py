"""Defines the names that a request template may use, their kinds, and where each of them has a value."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from adapters.proto.backend.field_values import Kind
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.text.backend.wire import FIELD
from gateway.core.errors import OptionError

__all__ = ["EVERY", "FIELD", "OPENAI", "STRUCTURED", "TEXT", "Scope", "Variants", "absent_name"]

_DESCRIBED: Final[Mapping[Kind, str]] = {
    "text": "text",
    "integer": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "object": "a JSON object",
    "arguments": "JSON text",
    "bytes": "bytes",
    "opaque": "state of the backend",
    "any": "a field of the client",
}


class Scope(msgspec.Struct, frozen=True):
    """The names at one place of a template.

    `kinds` are the names with one value, `texts` those with a list of text, `items` those with a list of items, and
    `cases` those that choose between variants, with their words.
    """

    kinds: Mapping[str, Kind]
    texts: frozenset[str] = frozenset()
    items: Mapping[str, "Variants"] = {}
    cases: Mapping[str, tuple[str, ...]] = {}

    def names(self) -> tuple[str, ...]:
        """Returns all names, those of lists and choices included."""
        return (*self.kinds, *sorted(self.texts), *self.items, *self.cases)

    def knows(self, name: str) -> bool:
        """Returns whether the name exists here. Any field of the client does."""
        return name in self.names() or (name.startswith(FIELD) and len(name) > len(FIELD))

    def kind(self, name: str) -> Kind | None:
        """Returns the kind of a name with one value, or None for another name."""
        return "any" if name.startswith(FIELD) else self.kinds.get(name)

    def described(self, name: str) -> str:
        """Returns the kind of a name that exists here, in words."""
        kind = self.kind(name)
        if kind is not None:
            return _DESCRIBED[kind]
        return "a choice" if name in self.cases else "a list"

    def within(
        self,
        kinds: Mapping[str, Kind],
        items: Mapping[str, "Variants"] | None = None,
        cases: Mapping[str, tuple[str, ...]] | None = None,
    ) -> "Scope":
        """Returns the scope of an item: its own names beside these."""
        return Scope({**self.kinds, **kinds}, self.texts, items or {}, {**self.cases, **(cases or {})})


class Variants(msgspec.Struct, frozen=True):
    """The items of a list: the name by which they differ, the scope of each variant, and the variants that a template
    must have."""

    by: str
    scopes: Mapping[str, Scope]
    required: tuple[str, ...] = ()

    def all(self) -> Scope:
        """Returns the names that every variant has."""
        first, *others = self.scopes.values()
        kinds = {name: kind for name, kind in first.kinds.items() if all(name in other.kinds for other in others)}
        items = {name: below for name, below in first.items.items() if all(name in other.items for other in others)}
        return Scope(kinds, first.texts, items, first.cases)


_COMMON: Final[Mapping[str, Kind]] = {
    "$model": "text",
    "$request_id": "text",
    "$max_tokens": "integer",
    "$temperature": "number",
    "$temperature_above_0": "number",
    "$samples": "flag",
    "$top_p": "number",
    "$top_p_below_1": "number",
    "$seed": "integer",
}
_STOP: Final = frozenset({"$stop"})

# A template with `$prompt` or `$transcript`: the conversation is one text.
TEXT: Final = Scope(
    {"$prompt": "text", "$system": "text", "$transcript": "text", "$schema": "object", **_COMMON}, _STOP
)

_CASES: Final = {
    "$choice": ("auto", "none", "required", "named"),
    "$effort": ("none", "minimal", "low", "medium", "high", "xhigh"),
    "$format": ("json_object", "json_schema"),
}
_DETAILS: Final = {"$detail": ("auto", "low", "high")}
_BASE: Final = Scope({**_COMMON, "$chosen": "text", "$schema": "object"}, _STOP, cases=_CASES)

_CALL: Final[Mapping[str, Kind]] = {"$id": "text", "$name": "text", "$arguments": "arguments", "$opaque": "opaque"}
_RESULT: Final[Mapping[str, Kind]] = {"$id": "text", "$name": "text", "$text": "text", "$is_error": "flag"}
_MESSAGE: Final[Mapping[str, Kind]] = {"$text": "text", "$speaker": "text"}
_TEXT_PART: Final = _BASE.within({"$text": "text"})
_CALLS: Final = Variants("", {"": _BASE.within(_CALL)})
_TOOLS: Final = Variants(
    "", {"": _BASE.within({"$name": "text", "$description": "text", "$parameters": "object", "$strict": "flag"})}
)
_RULES: Final = Variants("$kind", {"text": _TEXT_PART}, ("text",))
_SAID: Final = Variants(
    "$kind",
    {
        "text": _TEXT_PART,
        "image": _BASE.within(
            {"$url": "text", "$media_type": "text", "$bytes": "bytes", "$detail": "text"}, cases=_DETAILS
        ),
        "result": _BASE.within(_RESULT),
    },
    ("text",),
)
_WRITTEN: Final = Variants(
    "$kind",
    {
        "text": _TEXT_PART,
        "call": _BASE.within(_CALL),
        "reasoning": _BASE.within({"$text": "text", "$opaque": "opaque"}),
    },
    ("text", "call"),
)
_TURNS: Final = Variants(
    "$role",
    {
        "system": _BASE.within(_MESSAGE, {"$parts": _RULES}),
        "user": _BASE.within(_MESSAGE, {"$parts": _SAID}),
        "assistant": _BASE.within(
            {**_MESSAGE, "$reasoning": "text", "$opaque": "opaque"}, {"$parts": _WRITTEN, "$calls": _CALLS}
        ),
        "tool": _BASE.within(_RESULT),
    },
    ("user", "assistant"),
)

# A template with `$turns`: the conversation keeps its structure.
STRUCTURED: Final = Scope(
    {**_BASE.kinds, "$system": "text"}, _STOP, {"$turns": _TURNS, "$tools": _TOOLS}, dict(_BASE.cases)
)

# A template with `$openai`: the request as JSON of OpenAI's chat completions.
OPENAI: Final = Scope({"$openai": "object", "$model": "text", "$request_id": "text"})

# Every name at the top of any template.
EVERY: Final = Scope({**TEXT.kinds, **STRUCTURED.kinds, **OPENAI.kinds}, _STOP, STRUCTURED.items, STRUCTURED.cases)


def absent_name(name: str, scope: Scope, place: str, fitting: Sequence[str] = ()) -> OptionError:
    """Returns the error for a name without a value in this scope: where it belongs, or the nearest name. `fitting` are
    the names that can stand at the place."""
    home = _home(name, scope)
    if home is None:
        return unknown_name(place, f"there is no name {name!r} here", name, [*scope.names(), f"{FIELD}NAME"])
    nearest = ", ".join(fitting or scope.kinds)
    return mapping_error(place, f"{name} cannot stand here: it belongs {home}; here stand {nearest}")


def _home(name: str, scope: Scope) -> str | None:
    """Returns where a name belongs that exists elsewhere."""
    if name in STRUCTURED.names() and not scope.cases:
        return "in a template with $turns"
    if name in STRUCTURED.names():
        return "at the top of the request"
    if name in TEXT.names():
        return "in a template without $turns, of one text" if scope.cases else "in a template of one text"
    if name in OPENAI.names():
        return "in a template without $turns or $prompt, of JSON"
    lists = sorted(set(_lists_with(name, STRUCTURED)), reverse=True)
    return f"inside the items of {' and '.join(lists)}" if lists else None


def _lists_with(name: str, scope: Scope) -> Iterator[str]:
    """Yields the lists whose items have the name."""
    for written, variants in scope.items.items():
        for item in variants.scopes.values():
            if name in item.names():
                yield written
            yield from _lists_with(name, item)
