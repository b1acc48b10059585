"""The text after the mark of a call, in pieces -> the call's name and its arguments, or the reason why it is none."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


class Refusal(msgspec.Struct, frozen=True):
    """Why what looked like a call is text."""

    rule: Literal["TEXT_CALL_UNKNOWN", "TEXT_CALL_BROKEN"]
    reason: str


class CallReader(ABC):
    """Reads one call. A subclass advances in `read`; the parser looks at the rest.

    `name` is set once the text is certainly a call of a declared tool, and never again. From then on `arguments`
    collects what the arguments' JSON text goes on with. `refusal` is set instead when it is no call; the reader may
    then still read on to where that text ends, so that nothing in it is taken for another call. `failure` is set when
    it has a name and then turns out to be no call. `done`: the call, or what is none, has ended at the cursor.
    `mended` counts what was changed.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.arguments: list[str] = []
        self.refusal: Refusal | None = None
        self.failure: str | None = None
        self.done = False
        self.mended: Counter[str] = Counter()

    @abstractmethod
    def read(self, text: str, at: int) -> int:
        """Go on from the cursor to the end of the text or of the call; the new cursor."""

    def more(self, texts: Sequence[str]) -> Sequence[str] | None:
        """What each piece adds to the arguments when all of them only go on with a string in them; None when they may
        hold anything else, and must be read."""
        return None

    def refuse(self, reason: str) -> None:
        self.refusal = self.refusal or Refusal("TEXT_CALL_BROKEN", reason)

    def end_broken(self, reason: str) -> None:
        """It ends here, and is no call: too late when it has a name, and text otherwise."""
        self.done = True
        if self.name is None:
            self.refuse(reason)
        else:
            self.failure = reason

    def refuse_name(self, name: str) -> None:
        shown = f" {name}" if _NAME.fullmatch(name) else ""
        self.refusal = Refusal("TEXT_CALL_UNKNOWN", f"it calls a tool{shown} that was not offered")
