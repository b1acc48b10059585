"""Finds a field of a multipart/form-data body while it passes by: nothing is kept of it but the place.

Source: RFC 7578, over RFC 2046, section 5.1. Readers of forms differ as those of JSON do (`json_field`): in what ends a
line or a part, in the spelling of a name, in which of two fields they take. Where they could find different values, the
body is refused.
"""

import enum
import re
from typing import Final

from gateway.framing.body_field import FieldFault

# A form with more parts, and a part with a longer head, are ones of no API.
MOST_PARTS: Final = 500
MOST_HEAD: Final = 8 * 1024
_LONGEST: Final = 1024
# Programs choose among these; what is left out of RFC 2046 would need quotes, which readers treat differently.
BOUNDARY: Final = re.compile(r"[0-9A-Za-z'+_.-]{1,70}")
_END: Final = b"\r\n\r\n"
_LINE: Final = b"\r\n"
# Without a space before the colon, which some readers pass over (RFC 9112, section 5.1).
_LINE_OF_HEAD: Final = re.compile(rb"[0-9A-Za-z!#$%&'*+.^_`|~-]+:[^\0]*")
_HEADER: Final = re.compile(rb"content-disposition:(.*)", re.IGNORECASE)
# Of the head of a part: a disposition with its parameters, each a token or quoted. An escaped quote ends the text for
# some readers, as browsers write file names (HTML, "Multipart form data").
_DISPOSITION: Final = re.compile(
    rb'[ \t]*form-data(?P<params>(?:[ \t]*;[ \t]*[A-Za-z*]+=(?:"(?:[^"\\]|\\[^"])*"|[^"\s;\\]+))*)[ \t]*', re.IGNORECASE
)
_PARAM: Final = re.compile(rb';[ \t]*([A-Za-z*]+)=(?:"((?:[^"\\]|\\[^"])*)"|([^"\s;\\]+))')
# Some readers decode these in a name, or end it there.
_ODD: Final = re.compile(rb"[\\%\0-\x1f\x7f]|=\?")
_PLAIN: Final = re.compile(rb"text/plain(?:[ \t]*;[ \t]*charset=\"?utf-8\"?)?", re.IGNORECASE)


class _State(enum.Enum):
    BEGIN = enum.auto()
    HEAD = enum.auto()
    PART = enum.auto()
    END = enum.auto()


class FormField:
    """Finds a field by its name, in lower case; `boundary` is that of the form. A `BodyField`."""

    def __init__(self, name: str, boundary: str) -> None:
        self.value: str | None = None
        self.span = (0, 0)
        self._name = name
        self._mark = b"--" + boundary.encode("ascii")
        self._state = _State.BEGIN
        self._named = False
        self._parts = 0
        # The bytes that are not read yet, and where they begin; those of the field's own value are among them.
        self._kept = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        self._kept += data
        while self._step():
            pass

    def close(self) -> None:
        if self._state is not _State.END or self._kept not in (b"", _LINE):
            raise FieldFault("it is not a whole form")

    def encode(self, value: str) -> bytes:
        encoded = value.encode()
        if _LINE[:1] in encoded or _LINE[1:] in encoded or self._mark in encoded:
            raise FieldFault(f"its field {self._name!r} cannot hold this value")
        return encoded

    def _step(self) -> bool:
        """Reads on. Returns whether more can be read of what is kept."""
        match self._state:
            case _State.BEGIN:
                return self._begin()
            case _State.HEAD:
                return self._head()
            case _State.PART:
                return self._part()
            case _State.END:
                if not (_LINE.startswith(self._kept)):
                    raise FieldFault("it does not end with its last boundary")
                return False

    def _begin(self) -> bool:
        first = self._mark + _LINE
        if not first.startswith(self._kept[: len(first)]):
            raise FieldFault("it does not begin with its boundary")
        if len(self._kept) < len(first):
            return False
        self._drop(len(first))
        self._state = _State.HEAD
        return True

    def _head(self) -> bool:
        end = self._kept.find(_END, 0, MOST_HEAD)
        if end < 0:
            if len(self._kept) >= MOST_HEAD:
                raise FieldFault("a part of it has a head that is too long")
            return False
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise FieldFault(f"it has more than {MOST_PARTS} parts")
        self._named = self._is_named(self._kept[:end].split(_LINE))
        if self._named and self.value is not None:
            raise FieldFault(f"it has two fields {self._name!r}")
        self._drop(end + len(_END))
        self._state = _State.PART
        return True

    def _is_named(self, lines: list[bytes]) -> bool:
        """Returns whether the part with this head is the field. Raises FieldFault where that is not plain."""
        if any(b"\r" in line or b"\n" in line or not _LINE_OF_HEAD.fullmatch(line) for line in lines):
            raise FieldFault("the head of a part has an odd line")
        found = [match[1] for line in lines if (match := _HEADER.fullmatch(line))]
        disposition = _DISPOSITION.fullmatch(found[0]) if len(found) == 1 else None
        if disposition is None:
            raise FieldFault("a part has no plain content-disposition")
        params = [(name.lower(), quoted or token) for name, quoted, token in _PARAM.findall(disposition["params"])]
        names = [value for name, value in params if name in (b"name", b"name*")]
        if len(names) != 1 or (b"name*", names[0]) in params or _ODD.search(names[0]):
            raise FieldFault("a part has no plain name")
        if names[0].strip().lower() != self._name.encode():
            return False
        others = [line for line in lines if not _HEADER.fullmatch(line)]
        if names[0] != self._name.encode() or len(params) > 1 or not all(map(_is_plain, others)):
            raise FieldFault(f"its field {self._name!r} is not a plain text")
        return True

    def _part(self) -> bool:
        found = self._kept.find(self._mark)
        if found < 0:
            return self._pass_over(len(self._kept) - len(self._mark) - len(_LINE))
        end = found - len(_LINE)
        if end < 0 or self._kept[end:found] != _LINE:
            raise FieldFault("its boundary occurs within a part")
        behind = found + len(self._mark)
        after = self._kept[behind : behind + 2]
        if len(after) < 2:
            return self._pass_over(end)
        if after not in (_LINE, b"--"):
            raise FieldFault("its boundary occurs within a part")
        if self._named:
            self._take(end)
        self._drop(behind + 2)
        self._state = _State.HEAD if after == _LINE else _State.END
        return True

    def _pass_over(self, size: int) -> bool:
        """Forgets so many bytes of a part, unless they are those of the field."""
        if self._named:
            if size > _LONGEST:
                raise FieldFault(f"its field {self._name!r} is too long")
        elif size > 0:
            self._drop(size)
        return False

    def _take(self, end: int) -> None:
        if end > _LONGEST:
            raise FieldFault(f"its field {self._name!r} is too long")
        try:
            self.value = self._kept[:end].decode()
        except UnicodeDecodeError:
            raise FieldFault(f"its field {self._name!r} is not in UTF-8") from None
        self.span = (self._at, self._at + end)

    def _drop(self, size: int) -> None:
        self._kept = self._kept[size:]
        self._at += size


def _is_plain(line: bytes) -> bool:
    """Returns whether a header beside the disposition leaves a value as it stands."""
    name, _, value = line.partition(b":")
    return (
        name.lower() == b"content-type" and _PLAIN.fullmatch(value.strip()) is not None
    ) or name.lower() == b"content-length"
