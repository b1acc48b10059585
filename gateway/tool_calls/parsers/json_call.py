"""Reads a call written as `{"name": ..., "arguments": {...}}`; its arguments keep their text.

The call ends where its object closes: marks inside strings are content. Keys may come in any order. The object may be
in another one, `{"type": "function", "function": {...}}`, and either may be an element of a list.
"""

import json
import re
from collections.abc import Container, Sequence
from typing import Final

from gateway.tool_calls.parsers.json_scan import BLANKS, JsonScanner, Signal, skip
from gateway.tool_calls.parsers.reader import CallReader, begins_object, whole_arguments

NAME_KEY: Final = "name"
_FUNCTION_KEY: Final = "function"
ARGUMENTS_KEYS: Final = frozenset({"arguments", "parameters", "args", "input"})
_BESIDE: Final = frozenset({"id", "type"})
_EMPTY: Final = re.compile(r'null|""|\{[ \t\n\r]*+\}')


class JsonCallReader(CallReader):
    """Missing and null arguments are `{}`, unless a key that no call has may hold them: then it fails, as with anything
    but an object. A JSON string is decoded once. Arguments under two keys fail, unless the later are empty, or the
    earlier are and have not been emitted.

    The name is emitted with the first character of the arguments. `doubtful`: the mark before it may also open ordinary
    JSON, so an unknown key decides against a call, and so do arguments that do not begin an object.
    """

    def __init__(self, declared: Container[str], doubtful: bool = False) -> None:
        super().__init__()
        self._declared = declared
        self._doubtful = doubtful
        self._scanner = JsonScanner()
        self._around: JsonScanner | None = None
        self._begun = False
        self._taken: list[str] = []
        self._key = ""
        self._called: str | None = None
        self._held: str | None = None
        self._spoilt: str | None = None
        self._in_arguments = False
        self._is_twofold = False
        self._has_strange_key = False

    def read(self, text: str, at: int) -> int:
        at = at if self._begun else self._begin(text, at)
        while at < len(text) and not self.done:
            begin, at = at, self._scanner.scan(text, at)
            self._append(text, begin, at)
            self._follow(text, at)
        return at

    @property
    def certain(self) -> bool:
        inside = self._in_arguments and self._called is not None
        return inside and (not self._doubtful or begins_object("".join(self._taken)))

    def more(self, texts: Sequence[str]) -> Sequence[str] | None:
        passes = self._in_arguments and self.name is not None and self._scanner.passes("".join(texts))
        return texts if passes else None

    def _begin(self, text: str, at: int) -> int:
        at = skip(text, at)
        if at < len(text) and text[at] == "[" and not self.in_list:
            self.in_list = True
            at = skip(text, at + 1)
        if at < len(text):
            self._begun = True
            if text[at] != "{":
                self.end_broken("no JSON object follows its mark")
        return at

    def _append(self, text: str, begin: int, end: int) -> None:
        if self.refusal is not None:
            return
        if self._scanner.signal is Signal.REPAIRED:
            self.repaired["characters in strings were escaped"] += 1
            piece = text[begin : end - 1] + self._scanner.repaired
        else:
            piece = text[begin:end]
        if not piece:
            return
        if self._in_arguments and self.name is not None:
            self.arguments.append(piece)
        else:
            self._taken.append(piece)

    def _follow(self, text: str, at: int) -> None:
        match self._scanner.signal:
            case Signal.BROKEN:
                self._break()
            case Signal.END if self._around is not None:
                self._end_function(self._around)
            case Signal.END:
                self._end()
            case _ if self.refusal is not None:
                pass
            case Signal.KEY:
                self._key = json.loads(self._taken_text().lstrip("{," + BLANKS))
            case Signal.VALUE:
                self._begin_value(text[at])
            case Signal.VALUE_END:
                self._end_value()
            case _:
                pass

    def _begin_value(self, first: str) -> None:
        self._taken.clear()
        if self._key == NAME_KEY and self._called is None:
            if first != '"':
                self.refuse("its name is not a string")
        elif self._key == _FUNCTION_KEY and first == "{" and self._around is None and self._called is None:
            self._around, self._scanner = self._scanner, JsonScanner()
        elif self._key in ARGUMENTS_KEYS and self._awaits_arguments:
            self._in_arguments = True
            if self._doubtful and first not in '{"n':
                self.refuse("its arguments are not an object")
            elif first == "{" and self._called is not None:
                self.name = self._called
        elif self._key not in _BESIDE and self._key not in ARGUMENTS_KEYS:
            self._has_strange_key = True
            if self._doubtful:
                self.refuse("it is other JSON")

    @property
    def _awaits_arguments(self) -> bool:
        return self.name is None and self._spoilt is None and (self._held is None or _is_empty(self._held))

    def _end_value(self) -> None:
        taken = self._taken_text()
        if self._in_arguments:
            self._in_arguments = False
            if self.name is None:
                self._hold(taken)
        elif self._key == NAME_KEY and self._called is None:
            self._end_name(json.loads(taken))
        elif self._key in ARGUMENTS_KEYS and not _is_empty(taken):
            self._is_twofold = True
            if self._called is not None:
                self._fail_twofold()
        else:
            self.repaired["other fields were dropped"] += 1

    def _end_name(self, name: str) -> None:
        if name not in self._declared:
            self.refuse_name(name)
            return
        self._called = name
        if self._is_twofold:
            self._fail_twofold()
        elif self._held is not None:
            self._call()
        elif self._spoilt is not None:
            self.spoil(self._doubtful, self._spoilt)

    def _hold(self, taken: str) -> None:
        """Keeps whole arguments (before the name, as a string, or none) until the name is known; then emits them."""
        if taken in ("null", '""'):
            return
        self._held = None
        written = whole_arguments(taken, self.repaired)
        if written is None:
            self._spoilt = taken
            if self._called is not None:
                self.spoil(self._doubtful, taken)
            return
        self._held = written
        if self._called is not None:
            self._call()

    def _call(self) -> None:
        self.name = self._called
        self.arguments.append(self._held or "{}")

    def _fail_twofold(self) -> None:
        self.failure, self.done = "its arguments stand under two keys", True

    def _end_function(self, around: JsonScanner) -> None:
        """Ends the object with the call, and reads on in the one around it."""
        self._complete()
        self._taken.clear()
        self._scanner, self._around = around, None
        around.pass_over()

    def _end(self) -> None:
        self.done = True
        self._complete()

    def _complete(self) -> None:
        if self.refusal is None and self.name is None:
            if self._called is None:
                self.refuse("it has no name")
            elif self._has_strange_key:
                self.failure = "its arguments are missing, and it has keys that a call does not have"
            else:
                self.repaired["missing arguments became {}"] += 1
                self._call()

    def _break(self) -> None:
        if self.name is None or self._in_arguments:
            self.end_broken("it is not valid JSON")
        else:
            self.done = True
            self.repaired["objects without their last brace were closed"] += 1

    def _taken_text(self) -> str:
        taken = "".join(self._taken)
        self._taken.clear()
        return taken


def _is_empty(written: str) -> bool:
    return _EMPTY.fullmatch(written) is not None
