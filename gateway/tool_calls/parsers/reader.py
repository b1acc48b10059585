"""Reads the text after the mark of a call, in pieces: the call's name and arguments, or why it is no call."""

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gateway.tool_calls.parsers.json_scan import repaired_object

_OBJECT: Final = re.compile(r'"(?:\\[ntr]|[ \t\n\r])*+\{')
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


class Refusal(msgspec.Struct, frozen=True):
    """The reason why a possible call is text."""

    rule: Literal["TEXT_CALL_UNKNOWN", "TEXT_CALL_BROKEN"]
    reason: str


class CallReader(ABC):
    """Reads one call. A subclass advances in `read`; the parser reads the other fields.

    `name` is set once, when the text is certainly a call of a declared tool. From then on `arguments` collects the next
    pieces of the arguments' JSON text. `refusal` is set instead when it is no call; the reader may then still read on
    to the end of that text, so that nothing in it is taken for another call. `failure` is set when the call is
    `certain`, or has a name, and then proves invalid. `done`: the call, or the refused text, has ended at the cursor.
    `in_list`: the call is an element of a list, and another may follow. `repaired` counts the changes.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.arguments: list[str] = []
        self.refusal: Refusal | None = None
        self.failure: str | None = None
        self.done = False
        self.in_list = False
        self.repaired: Counter[str] = Counter()

    @abstractmethod
    def read(self, text: str, at: int) -> int:
        """Reads from the cursor to the end of the text or of the call; returns the new cursor."""

    @property
    def certain(self) -> bool:
        """Returns whether it calls a declared tool although none of its arguments can be emitted yet.

        It is then text no longer: a lost call must not pass for a response.
        """
        return False

    def more(self, texts: Sequence[str]) -> Sequence[str] | None:
        """Returns the addition of each piece to the arguments when all of them only continue a string in them.

        None when they may hold anything else, and must be read.
        """
        return None

    def refuse(self, reason: str) -> None:
        self.refusal = self.refusal or Refusal("TEXT_CALL_BROKEN", reason)

    def end_broken(self, reason: str) -> None:
        """Ends an invalid call: a failure when it has a name or is certain, and text otherwise."""
        if self.name is None and not self.certain:
            self.refuse(reason)
        else:
            self.failure = reason
        self.done = True

    def spoil(self, doubtful: bool, written: str) -> None:
        """Records arguments that are no object: a failure, unless the text may also be no call."""
        if doubtful and not begins_object(written):
            self.refuse("its arguments are not an object")
        else:
            self.failure, self.done = "its arguments are not an object", True

    def refuse_name(self, name: str) -> None:
        shown = f" {name}" if _NAME.fullmatch(name) else ""
        self.refusal = Refusal("TEXT_CALL_UNKNOWN", f"it calls a tool{shown} that was not offered")


def begins_object(written: str) -> bool:
    """Returns whether a JSON string, or the beginning of one, holds an object."""
    return _OBJECT.match(written) is not None


def whole_arguments(written: str, repaired: Counter[str]) -> str | None:
    """Returns the object in a JSON value: null is `{}`, and a string is decoded once. None when it is no object.

    Every change is counted in `repaired`.
    """
    if written.startswith('"'):
        repaired["arguments written as a string were decoded"] += 1
        written = _in_utf8(json.loads(written)).strip() or "null"
    if written == "null":
        repaired["missing arguments became {}"] += 1
        return "{}"
    whole = repaired_object(written)
    if whole is not None and whole != written:
        repaired["characters in strings were escaped"] += 1
    return whole


def _in_utf8(text: str) -> str:
    """Returns JSON text that can be encoded: half a character (a lone surrogate) becomes its escape again."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(f"\\u{ord(part):04x}" if "\ud800" <= part <= "\udfff" else part for part in text)
    return text
