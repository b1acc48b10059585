"""Joins the pieces in which the API streams the arguments of a call.

Source: Vertex AI, reference, `FunctionCall` and `PartialArg`: each piece sets or continues the value at a JSON path
(RFC 9535) and says in `willContinue` whether another piece of the call follows; the last piece may be an empty call.
"""

import re
from io import StringIO
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.framing.json_text import MAX_DEPTH

_PATH: Final = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_ESCAPE: Final = re.compile(r"\\(.)")
_KINDS: Final = ("stringValue", "numberValue", "boolValue", "nullValue")
# Paths to indexes far behind the ends of arrays would fill the memory. So many items of one call may be missing.
_MOST_MISSING: Final = 1000

_Step: TypeAlias = str | int
# A text that was continued is a buffer: it would be copied whole for each of its pieces.
_Held: TypeAlias = "bool | int | float | str | StringIO | list[_Held] | dict[str, _Held] | None"


class BrokenPiece(ValueError):
    """A piece that sets no value, or one where no value can be."""


def is_piece(call: JsonObject) -> bool:
    """Returns whether a call has no whole arguments: others follow or came before."""
    return bool(call.get("partialArgs") or call.get("willContinue"))


class PartialArguments:
    """The arguments of one call so far. `open`: more pieces follow."""

    def __init__(self) -> None:
        self.open = True
        self._held: _Held = {}
        self._missing = 0

    @property
    def arguments(self) -> Json:
        """The arguments, a copy."""
        arguments: Json = msgspec.to_builtins(self._held, enc_hook=StringIO.getvalue)
        return arguments

    def add(self, call: JsonObject) -> None:
        """Adds the arguments of a piece, which stays as it is. Raises BrokenPiece."""
        self.open = call.get("willContinue") is True
        if isinstance(whole := call.get("args"), dict) and isinstance(self._held, dict):
            self._held |= msgspec.to_builtins(whole)
        pieces = call.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                raise BrokenPiece("a partial argument is not an object")
            self._put(piece)

    def _put(self, piece: JsonObject) -> None:
        steps = _steps(piece.get("jsonPath"))
        kinds = [name for name in _KINDS if name in piece]
        if not kinds:
            if unknown := [name for name in piece if name.endswith("Value")]:
                raise BrokenPiece(f"a partial argument has {unknown[0][:40]!r}, which is no kind of value")
            return
        value = None if kinds[0] == "nullValue" else msgspec.to_builtins(piece[kinds[0]])
        self._held = self._with(self._held, steps, value)

    def _with(self, held: _Held, steps: list[_Step], value: _Held) -> _Held:
        """Returns what stands at a place with the value put in; a text continues the text that is there."""
        if not steps:
            return _continued(held, value) if isinstance(held, str | StringIO) and isinstance(value, str) else value
        step, *rest = steps
        if isinstance(step, str):
            members = {} if held is None else held
            if not isinstance(members, dict):
                raise BrokenPiece("a partial argument is a member of a value that has none")
            members[step] = self._with(members.get(step), rest, value)
            return members
        items = [] if held is None else held
        if not isinstance(items, list):
            raise BrokenPiece("a partial argument is an item of a value that has none")
        if step >= len(items):
            self._missing += step - len(items)
            if self._missing > _MOST_MISSING:
                raise BrokenPiece("a partial argument is an item far behind the end of its array")
            items += [None] * (step + 1 - len(items))
        items[step] = self._with(items[step], rest, value)
        return items


def _continued(text: str | StringIO, more: str) -> StringIO:
    if isinstance(text, str):
        begun, text = text, StringIO()
        text.write(begun)
    text.write(more)
    return text


def _steps(path: Json) -> list[_Step]:
    if not isinstance(path, str) or not path.startswith("$"):
        raise BrokenPiece("a partial argument has no JSON path")
    steps: list[_Step] = []
    at = 1
    while at < len(path):
        found = _PATH.match(path, at)
        if found is None:
            raise BrokenPiece(f"a partial argument has the JSON path {path[:40]!r}, which names no value")
        member, index, single, double = found.groups()
        quoted = single if single is not None else double
        name = member if quoted is None else _ESCAPE.sub(r"\1", quoted)
        steps.append(int(index) if index is not None else name)
        at = found.end()
    if len(steps) > MAX_DEPTH:
        raise BrokenPiece(f"a partial argument is nested deeper than {MAX_DEPTH} levels")
    return steps
