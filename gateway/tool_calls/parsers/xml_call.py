"""Reads `<function=NAME> <parameter=KEY> VALUE </parameter> ... </function>` as a name and JSON arguments.

Values are plain text, and become JSON by the types of the tool's schema. A value ends at a closing tag after which a
tag of the call follows; any other closing tag is content.
"""

from collections.abc import Sequence
from typing import Final

from gateway.tool_calls.parsers.declared_tools import STRING, Declared, string, typed
from gateway.tool_calls.parsers.json_scan import skip
from gateway.tool_calls.parsers.reader import CallReader

FUNCTION: Final = "<function="
PARAMETER: Final = "<parameter="
END_PARAMETER: Final = "</parameter>"
END_FUNCTION: Final = "</function>"

# A longer text is no name, and a longer run of blanks between two tags is content.
LONGEST_NAME: Final = 256
_MOST_BLANKS: Final = 64

_BODY_TAGS: Final = (PARAMETER, END_FUNCTION)
_NEED_MORE: Final = -1


class XmlCallReader(CallReader):
    """The step to take next is the state: mark, name, body (between tags), key, newline, value.

    A step returns the new cursor, or `_NEED_MORE` when it cannot decide; then the text from the cursor on is held,
    which is never more than a name or two tags. `opened`: `<function=` has been read already.
    """

    def __init__(self, declared: Declared, opened: bool = True) -> None:
        super().__init__()
        self._declared = declared
        self._step = self._name if opened else self._mark
        self._held = ""
        self._called = ""
        self._keys: set[str] = set()
        self._types = STRING
        self._value_taken: list[str] = []

    def read(self, text: str, at: int) -> int:
        data, offset = text, 0
        if self._held:
            data, offset, at = self._held + text[at:], at - len(self._held), 0
            self._held = ""
        while at < len(data) and not self.done:
            following = self._step(data, at)
            if following == _NEED_MORE:
                self._held = data[at:]
                return len(text)
            at = following
        return at + offset

    def more(self, texts: Sequence[str]) -> Sequence[str] | None:
        if self._held or self.refusal is not None or self._types != STRING or self._step != self._value:
            return None
        ends = texts[-1].endswith("\n") or "<" in "".join(texts)
        return None if ends else [string(text)[1:-1] for text in texts]

    def _mark(self, data: str, at: int) -> int:
        return self._tag(data, at, (FUNCTION,))

    def _body(self, data: str, at: int) -> int:
        end = skip(data, at)
        return end if end > at else self._tag(data, at, _BODY_TAGS)

    def _tag(self, data: str, at: int, tags: Sequence[str]) -> int:
        tag, matched = _tag_at(data, at, tags)
        if tag is None:
            return _NEED_MORE if at + matched == len(data) else self._fail(at + matched)
        if tag == FUNCTION:
            self._step = self._name
        else:
            if self.refusal is None:
                self.name = self._called
            self._step = self._key
        if tag == END_FUNCTION:
            self._emit("}" if self._keys else "{}")
            self.done = True
        return at + len(tag)

    def _name(self, data: str, at: int) -> int:
        name, end = _bracketed(data, at)
        if name is None:
            return _NEED_MORE if end == len(data) else self._fail(end)
        if name not in self._declared:
            self.refuse_name(name)
        self._called = name
        self._step = self._body
        return end

    def _key(self, data: str, at: int) -> int:
        key, end = _bracketed(data, at)
        if key is None or key in self._keys:
            return _NEED_MORE if key is None and end == len(data) else self._fail(end)
        if self._called in self._declared:
            self._types = self._declared.types_of(self._called, key)
        self._emit(f"{', ' if self._keys else '{'}{string(key)}: ")
        self._emit('"' if self._types == STRING else "")
        self._keys.add(key)
        self._step = self._newline
        return end

    def _newline(self, data: str, at: int) -> int:
        """The first newline of a value belongs to the tag."""
        if data[at] == "\r" and at + 1 == len(data):
            return _NEED_MORE
        self._step = self._value
        return at + (2 if data.startswith("\r\n", at) else 1 if data[at] == "\n" else 0)

    def _value(self, data: str, at: int) -> int:
        end = data.find(END_PARAMETER, at)
        while end >= 0:
            after = end + len(END_PARAMETER)
            following = skip(data, after)
            tag, matched = _tag_at(data, following, _BODY_TAGS)
            if following - after <= _MOST_BLANKS:
                if tag is not None:
                    self._end_value(data[at : _before_newline(data, at, end)])
                    return after
                if following + matched == len(data):
                    return self._go_on(data, at, _before_newline(data, at, end))
            end = data.find(END_PARAMETER, after)
        return self._go_on(data, at, _maybe_end(data, at))

    def _go_on(self, data: str, at: int, certain: int) -> int:
        """Takes the certain part of the value; then waits for more."""
        if certain == at:
            return _NEED_MORE
        self._append_value(data[at:certain])
        return certain

    def _append_value(self, piece: str) -> None:
        if self._types == STRING:
            self._emit(string(piece)[1:-1])
        else:
            self._value_taken.append(piece)

    def _end_value(self, piece: str) -> None:
        self._append_value(piece)
        self._emit('"' if self._types == STRING else typed("".join(self._value_taken), self._types))
        self._value_taken.clear()
        self._step = self._body

    def _emit(self, written: str) -> None:
        if written and self.refusal is None:
            self.arguments.append(written)

    def _fail(self, at: int) -> int:
        self.end_broken("it contains unexpected text")
        return at


def _tag_at(data: str, at: int, tags: Sequence[str]) -> tuple[str | None, int]:
    """Returns the tag at the cursor and its length; or None, and the length of the longest partial match."""
    longest = 0
    for tag in tags:
        if data.startswith(tag, at):
            return tag, len(tag)
        matched = 0
        while at + matched < len(data) and data[at + matched] == tag[matched]:
            matched += 1
        longest = max(longest, matched)
    return None, longest


def _bracketed(data: str, at: int) -> tuple[str | None, int]:
    """Returns the word before `>` and the cursor after it; or None, and the end of the possible word."""
    limit = min(len(data), at + LONGEST_NAME)
    end = at
    while end < limit and data[end] not in ">\n<":
        end += 1
    word = data[at:end].strip()
    return (word, end + 1) if word and end < limit and data[end] == ">" else (None, end)


def _before_newline(data: str, at: int, end: int) -> int:
    """The last newline of a value belongs to the tag."""
    return end - 1 if end > at and data[end - 1] == "\n" else end


def _maybe_end(data: str, at: int) -> int:
    """Returns where the text may continue as a closing tag, with the newline before it."""
    closing = f"\n{END_PARAMETER}"
    for begin in range(max(at, len(data) - len(closing) + 1), len(data)):
        if closing.startswith(data[begin:]) or END_PARAMETER.startswith(data[begin:]):
            return begin
    return len(data)
