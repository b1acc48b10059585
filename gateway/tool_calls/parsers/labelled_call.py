"""Reads a call written as a name, a label and a JSON object, as in `NAME\\nAction Input: {...}`, and defines the marks
of such calls in the notation of the transcript: `Tool calls: Called NAME with args: {...}`.

Models that read a flattened history may continue its notation instead of calling. Text that names no declared tool, or
stands in the middle of a line, is a description of a call, and stays text.
"""

from collections.abc import Container, Sequence
from typing import Final

from gateway.core.policy import Labels
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.json_scan import JsonScanner, Signal, skip
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.reader import CallReader, begins_object, whole_arguments

# A longer text is prose.
_LONGEST: Final = 256


class LabelledReader(CallReader):
    """`name_end` is the character that ends the name; blanks and then `label` follow it.

    `doubtful`: prose may begin with the same mark, so that only arguments which begin an object make it a call.

    The step to take next is the state: name, label, opening, and then the object, or arguments in another form.
    """

    def __init__(self, declared: Container[str], name_end: str, label: str, doubtful: bool = False) -> None:
        super().__init__()
        self._declared = declared
        self._name_end = name_end
        self._label_text = label
        self._doubtful = doubtful
        self._scanner = JsonScanner()
        self._step = self._name
        self._taken: list[str] = []
        self._called = ""
        self._matched = 0

    def read(self, text: str, at: int) -> int:
        while at < len(text) and not self.done:
            at = self._step(text, at)
        return at

    @property
    def certain(self) -> bool:
        labelled = self._matched == len(self._label_text)
        return labelled and (not self._doubtful or begins_object("".join(self._taken)))

    def more(self, texts: Sequence[str]) -> Sequence[str] | None:
        return texts if self.name is not None and self._scanner.passes("".join(texts)) else None

    def _name(self, text: str, at: int) -> int:
        room = min(len(text), at + _LONGEST - len(self._called))
        end = text.find(self._name_end, at, room)
        self._called += text[at : end if end >= 0 else room]
        if end < 0:
            if len(self._called) == _LONGEST:
                self.end_broken("no name follows its mark")
            return room
        self._called = self._called.strip()
        self._step = self._label
        if self._called not in self._declared:
            self.refuse_name(self._called)
            self.done = True
        return end

    def _label(self, text: str, at: int) -> int:
        at = at if self._matched else skip(text, at)
        while at < len(text) and self._matched < len(self._label_text):
            if text[at] != self._label_text[self._matched]:
                self.end_broken("no arguments follow its name")
                return at
            self._matched += 1
            at += 1
        if self._matched == len(self._label_text):
            self._step = self._opening
        return at

    def _opening(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at == len(text):
            return at
        if text[at] == "{":
            self.name = self._called
        elif text[at] not in '"n':
            self.end_broken("its arguments are not an object")
        self._step = self._value
        return at

    def _value(self, text: str, at: int) -> int:
        begin, at = at, self._scanner.scan(text, at)
        if self._scanner.signal is Signal.REPAIRED:
            self.repaired["characters in strings were escaped"] += 1
            self._append(text[begin : at - 1] + self._scanner.repaired)
        else:
            self._append(text[begin:at])
        if self._scanner.signal is Signal.BROKEN:
            self.end_broken("it is not valid JSON")
        elif self._scanner.signal is Signal.END:
            self._end()
        return at

    def _append(self, piece: str) -> None:
        if piece:
            (self._taken if self.name is None else self.arguments).append(piece)

    def _end(self) -> None:
        self.done = True
        if self.name is None:
            whole = whole_arguments("".join(self._taken), self.repaired)
            if whole is None:
                self.spoil(self._doubtful, "".join(self._taken))
            else:
                self.name = self._called
                self.arguments.append(whole)


_LABEL: Final = "with args:"


def prose_marks(labels: Labels) -> tuple[Mark, ...]:
    """Returns the marks for a format's parser (`also`). Further calls follow the first one after a semicolon."""
    return (
        Mark(f"{labels.tool_calls}: Called ", read_call, anchor="line", doubtful=True),
        Mark("; Called ", read_call, anchor="first", doubtful=True),
    )


def read_call(declared: Declared) -> LabelledReader:
    return LabelledReader(declared, " ", _LABEL, doubtful=True)
