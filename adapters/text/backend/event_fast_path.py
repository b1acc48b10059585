# fast path: "CPU/chunk, us", decodes the text of an event and the places beside it that must be empty
# budget: "text chunk"
# law: tests/adapters/text/backend/test_event_fast_path.py
#      test_a_plain_event_says_the_same_when_it_is_read_in_full
"""Extracts the text from events that hold only a piece of text.

Nearly every event of a response is of this kind. The wire names where the text stands and which places must be empty;
only those are parsed, and the rest of the event is skipped.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from adapters.text.backend.paths import Path, parse_path
from adapters.text.backend.wire import Wire

# A path and the type that its value may have. (Any: types are made of them.)
Place: TypeAlias = tuple[Path, Any]

_EMPTY: Final = Literal["", None]
_FLAG: Final = bool | None


class EventFastPath:
    """Reads such events of one wire. A wire on which the types of the places do not distinguish these events has no
    fast path."""

    def __init__(self, wire: Wire) -> None:
        text = parse_path(wire.text[0]) if wire.text else ()
        flags = [parse_path(path) for path in (wire.hidden, wire.final) if path is not None]
        empty = [parse_path(path) for path in _empty(wire)]
        self._decode = None
        if wire.framing in ("sse", "ndjson") and _can_be_typed(text, [*flags, *empty]):
            places = [(text, str), *((path, _FLAG) for path in flags), *((path, _EMPTY) for path in empty)]
            self._decode = msgspec.json.Decoder(_struct(places)).decode
            self._text = attrgetter(_attribute(text))
            self._flags = [attrgetter(_attribute(path)) for path in flags]

    def read(self, frames: Iterator[bytes]) -> tuple[list[str], bytes | None]:
        """Returns the texts of the next events, and the first event that must be read in full because it may hold
        something else or is invalid; None behind the last one."""
        texts: list[str] = []
        if self._decode is None:
            return texts, next(frames, None)
        frame = None
        try:
            for frame in frames:
                decoded = self._decode(frame)
                for flag in self._flags:
                    if flag(decoded):
                        return texts, frame
                texts.append(self._text(decoded))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
            return texts, frame
        return texts, None


def _empty(wire: Wire) -> list[str]:
    """Returns the places that must be empty. Places beside a flag of the end have no meaning before the end."""
    usage = wire.usage
    ends = () if wire.final is not None else (*wire.finish, usage.prompt, usage.completion, usage.total)
    return [path for path in (*wire.error, *wire.reasoning, *ends) if path is not None]


def _can_be_typed(text: Path, others: Sequence[Path]) -> bool:
    """Returns whether the text and the other places do not contain each other, and lists are used only by their first
    element."""
    paths = [text, *others]
    return (
        all(path and isinstance(path[0], str) and not any(map(_is_later, path)) for path in paths)
        and all(_fit(one, other) for one in paths for other in others)
        and not any(path[: len(text)] == text[: len(path)] for path in others)
    )


def _is_later(step: str | int) -> bool:
    return isinstance(step, int) and step > 0


def _fit(one: Path, other: Path) -> bool:
    """Returns whether no value would have to be an object and a list at once."""
    kinds = next(((type(a), type(b)) for a, b in zip(one, other, strict=False) if a != b), (str, str))
    return kinds == (str, str)


def _struct(places: Sequence[Place]) -> type[msgspec.Struct]:
    """Creates the type of a value from the places in it. A place that must be empty has no places below it."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    steps = list(dict.fromkeys(path[0] for path, _ in places))
    for step in steps:
        below = [(path[1:], kind) for path, kind in places if path[0] == step]
        kind = next((kind for path, kind in below if not path), None) or _struct(below)
        needed = any(kind is str for _, kind in below)
        fields.append((_attribute((step,)), kind) if needed else (_attribute((step,)), kind | None, None))
    names = {_attribute((step,)): str(step) for step in steps}
    return msgspec.defstruct("Event", fields, array_like=steps == [0], rename=names, kw_only=True, gc=False)


def _attribute(path: Path) -> str:
    """Encodes a path as an attribute name, because not every key is a valid identifier."""
    return ".".join(f"_{str(step).encode().hex()}" for step in path)
