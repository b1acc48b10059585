"""Fields the dialect does not know, put back where they belong."""

from collections.abc import Sequence
from typing import Final

from gateway.events import Scope
from gateway.types import EMPTY, Json, JsonObject


def call_object(id: str, name: str, arguments: str, extra: JsonObject) -> dict[str, Json]:
    """A tool call as the dialect writes it, with the fields we do not know in their places."""
    kind, field = ("custom", "input") if extra.get("type") == "custom" else ("function", "arguments")
    inner = extra.get(kind)
    body: dict[str, Json] = {"name": name, field: arguments, **(inner if isinstance(inner, dict) else {})}
    rest = {key: value for key, value in extra.items() if key not in ("type", kind)}
    return {"id": id, "type": kind, kind: body, **rest}


_GROWING: Final = (str, list, dict)


def merged(objects: Sequence[JsonObject], scope: Scope) -> JsonObject:
    """The fields of one scope, told one after the other, as one object: only those of the response do not grow."""
    if not objects:
        return EMPTY
    if len(objects) == 1:
        return objects[0]
    fields = _Fields(grow=scope != "response")
    for more in objects:
        fields.add(more)
    return fields.joined()


class _Fields:
    """Objects that came one after the other, as one. Where they `grow`, text, arrays and objects of a delta are
    continued, as clients do it; any other later value replaces what was there, unless it is null.

    Pieces are kept until `joined` asks for the whole: to continue a text or an array piece by piece would copy all of
    it each time.
    """

    def __init__(self, *, grow: bool) -> None:
        self._grow = grow
        self._pieces: dict[str, list[Json]] = {}

    def add(self, fields: JsonObject) -> None:
        """The next object."""
        for key, value in fields.items():
            pieces = self._pieces.get(key)
            if pieces is not None and value is None:
                continue
            if pieces is not None and self._grow and isinstance(value, _GROWING) and type(pieces[0]) is type(value):
                pieces.append(value)
            else:
                self._pieces[key] = [value]

    def joined(self) -> dict[str, Json]:
        """All of them as one object."""
        return {key: _joined(pieces) for key, pieces in self._pieces.items()}


def _joined(pieces: list[Json]) -> Json:
    """One value of the pieces, which are all of one type if there are several."""
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
