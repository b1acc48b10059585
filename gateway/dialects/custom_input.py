"""Reads and writes the free text of a custom tool, which as a function has one argument: `{"input": TEXT}`."""

import json
import re
from enum import IntEnum
from typing import Final

import msgspec

from gateway.core.call_arguments import INPUT
from gateway.core.conversation import EMPTY, JsonObject, ToolSpec

_INPUT_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {INPUT: {"type": "string", "description": "The whole input of the tool, as plain text."}},
    "required": [INPUT],
    "additionalProperties": False,
}
_HEAD: Final = '{"input":"'
_HEAD_SPACED: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*"input"[ \t\r\n]*:[ \t\r\n]*"')
# Whole characters and whole escapes, also line breaks that should be escaped.
_CHARACTERS: Final = re.compile(
    r'(?:[^"\\]+|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"
)
_LONGEST_ESCAPE: Final = len(r"\ud83d\ude00")
_decode: Final = json.JSONDecoder(strict=False).decode


class _State(IntEnum):
    """What the next piece of the arguments belongs to: the beginning of the object, the text in it, the end of the
    object, or something else than such an object."""

    HEAD = 0
    TEXT = 1
    TAIL = 2
    OTHER = 3


class CustomInput:
    """Reads the text piece by piece. Where the arguments are no such object, the rest of them is the text as it stands.
    Arguments that end inside the object have no more text."""

    def __init__(self) -> None:
        self._state = _State.HEAD
        self._held: list[str] = []
        # The held pieces without white space.
        self._compact = ""

    def add(self, piece: str) -> str:
        """Returns the text that is certain after a further piece."""
        match self._state:
            case _State.HEAD:
                return self._head(piece)
            case _State.TEXT:
                return self._text(self._taken() + piece)
            case _State.TAIL:
                self._held.append(piece)
                return ""
            case _State.OTHER:
                return piece

    def close(self) -> str:
        """Returns the text that was held back."""
        held = self._taken()
        if self._state is _State.TAIL:
            return "" if held.strip() in ("", "}") else f'"{held}'
        return held

    def _head(self, piece: str) -> str:
        self._held.append(piece)
        self._compact += "".join(piece.split())
        if len(self._compact) < len(_HEAD) and _HEAD.startswith(self._compact):
            return ""
        held = self._taken()
        head = _HEAD_SPACED.match(held)
        if head is None:
            self._state = _State.OTHER
            return held
        self._state = _State.TEXT
        return self._text(held[head.end() :])

    def _text(self, written: str) -> str:
        certain = _CHARACTERS.match(written)
        assert certain is not None  # it may be empty
        end = certain.end()
        text: str = _decode(f'"{written[:end]}"')
        rest = written[end:]
        if rest[:1] == '"':
            self._state = _State.TAIL
            self._held.append(rest[1:])
        elif len(rest) < _LONGEST_ESCAPE:
            self._held.append(rest)
        else:
            self._state = _State.OTHER
            text += rest
        return text

    def _taken(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        return held


def custom_input(arguments: str) -> str:
    """Returns the free text in the arguments of a custom tool."""
    read = CustomInput()
    return read.add(arguments) + read.close()


class Grammar(msgspec.Struct, frozen=True):
    """What the input of a custom tool must follow, in the syntax `lark` or `regex`."""

    syntax: str
    definition: str


def custom_spec(name: str, description: str | None, grammar: Grammar | None, extra: JsonObject = EMPTY) -> ToolSpec:
    """Returns a custom tool as a function; its grammar is added to the description."""
    ruled = grammar and f"The input must follow this grammar ({grammar.syntax}):\n{grammar.definition}"
    return ToolSpec(name, "\n\n".join([text for text in (description, ruled) if text]), _INPUT_SCHEMA, extra=extra)
