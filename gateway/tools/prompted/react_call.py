"""What follows `Action:` -> the name on that line, and the JSON object after `Action Input:`."""

from collections.abc import Container
from typing import Final

from gateway.tools.prompted.json_scan import JsonScanner, Signal, skip
from gateway.tools.prompted.reader import CallReader

INPUT: Final = "Action Input:"

# A longer line is prose.
_LONGEST: Final = 256


class ReactReader(CallReader):
    """The step to take next is the state: the line with the name, the label, the object."""

    def __init__(self, declared: Container[str]) -> None:
        super().__init__()
        self._declared = declared
        self._scanner = JsonScanner()
        self._step = self._line
        self._taken = ""
        self._matched = 0
        self._called = ""

    def read(self, text: str, at: int) -> int:
        while at < len(text) and not self.done:
            at = self._step(text, at)
        return at

    def _line(self, text: str, at: int) -> int:
        room = at + _LONGEST - len(self._taken)
        end = text.find("\n", at, room)
        self._taken += text[at : end if end >= 0 else min(room, len(text))]
        if end < 0:
            if len(self._taken) == _LONGEST:
                self.end_broken("a long line follows its mark")
            return min(room, len(text))
        self._called = self._taken.strip()
        self._step = self._label
        if self._called not in self._declared:
            self.refuse_name(self._called)
            self.done = True
        return end

    def _label(self, text: str, at: int) -> int:
        at = at if self._matched else skip(text, at)
        while at < len(text) and self._matched < len(INPUT):
            if text[at] != INPUT[self._matched]:
                self.end_broken("no action input follows")
                return at
            self._matched += 1
            at += 1
        if self._matched == len(INPUT):
            self._step = self._opening
        return at

    def _opening(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at < len(text):
            self._step = self._object
            if text[at] != "{":
                self.end_broken("its arguments are no object")
            else:
                self.name = self._called
        return at

    def _object(self, text: str, at: int) -> int:
        begin, at = at, self._scanner.scan(text, at)
        if self._scanner.signal is Signal.MENDED:
            self.mended["characters in strings were escaped"] += 1
            self.arguments.append(text[begin : at - 1] + self._scanner.mended)
        elif at > begin:
            self.arguments.append(text[begin:at])
        if self._scanner.signal is Signal.BROKEN:
            self.end_broken("it is no valid JSON")
        elif self._scanner.signal is Signal.END:
            self.done = True
        return at
