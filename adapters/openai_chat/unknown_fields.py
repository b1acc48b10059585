"""Puts unknown fields back into the objects that carried them."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Scope


def call_object(id: str, name: str, arguments: Json, extra: JsonObject) -> dict[str, Json]:
    """Returns a tool call in the dialect's form, with its unknown fields in their places.

    `arguments` is JSON text, for some providers an object.
    """
    kind, field = ("custom", "input") if extra.get("type") == "custom" else ("function", "arguments")
    inner = extra.get(kind)
    body: dict[str, Json] = {"name": name, field: arguments, **(inner if isinstance(inner, dict) else {})}
    rest = {key: value for key, value in extra.items() if key not in ("type", kind)}
    return {"id": id, "type": kind, kind: body, **rest}


def as_custom(extra: JsonObject) -> JsonObject:
    """Returns the unknown fields of a call of a function as those of a call of a custom tool."""
    rest = {key: value for key, value in extra.items() if key != "function"}
    inner = {"custom": extra["function"]} if "function" in extra else {}
    return {**rest, **inner, "type": "custom"}


_GROWING: Final = (str, list, dict)


def merged(objects: Sequence[JsonObject], scope: Scope) -> JsonObject:
    """Merges the successive fields of one scope into one object; those of the response are never continued."""
    match objects:
        case []:
            return EMPTY
        case [only]:
            return only
        case _:
            fields = _Fields(grow=scope != "response")
            for more in objects:
                fields.add(more)
            return fields.joined()


class _Fields:
    """Merges successive objects into one.

    Where they `grow`, text, arrays and objects of a delta are continued, as clients do it; any other later value
    replaces the earlier one, unless it is null.

    Pieces are kept until `joined` is called: continuing a text or an array piece by piece would copy all of it each
    time.
    """

    def __init__(self, *, grow: bool) -> None:
        self._grow = grow
        self._pieces: dict[str, list[Json]] = {}

    def add(self, fields: JsonObject) -> None:
        """Adds the next object."""
        for key, value in fields.items():
            pieces = self._pieces.get(key)
            if pieces is not None and value is None:
                continue
            if pieces is not None and self._grow and isinstance(value, _GROWING) and type(pieces[0]) is type(value):
                pieces.append(value)
            else:
                self._pieces[key] = [value]

    def joined(self) -> dict[str, Json]:
        """Returns all of them as one object."""
        return {key: _joined(pieces) for key, pieces in self._pieces.items()}


def _joined(pieces: list[Json]) -> Json:
    """Joins the pieces of one value, which are all of one type if there are several."""
    if len(pieces) == 1:
        return pieces[0]
    if isinstance(pieces[0], str):
        return "".join([piece for piece in pieces if isinstance(piece, str)])
    if isinstance(pieces[0], list):
        return [item for piece in pieces if isinstance(piece, list) for item in piece]
    whole = _Fields(grow=True)
    for piece in pieces:
        whole.add(piece if isinstance(piece, dict) else {})
    return whole.joined()
