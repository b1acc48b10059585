"""The bytes of events that say nothing but a piece of text in, the pieces out.

Nearly every event of an answer is one of these. The wire names where the text stands and which places must be empty
meanwhile; only those are read, the rest of the event is skipped.
"""

from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from adapters.text.paths import Path, parse_path
from adapters.text.wire import Wire

# A path and the type of what may stand there. (Any: types are made of them.)
Place: TypeAlias = tuple[Path, Any]

_EMPTY: Final = Literal["", None]
_FLAG: Final = bool | None


class PlainReader:
    """Reads such events of one wire. A wire that cannot tell them from others by the types of places has none."""

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

    def read(self, events: Sequence[bytes], at: int) -> list[str]:
        """The texts of the events from this place on, up to the first that may say something else, or is none, and
        must be read in full."""
        texts: list[str] = []
        if self._decode is None:
            return texts
        try:
            for event in islice(events, at, None):
                said = self._decode(event)
                for flag in self._flags:
                    if flag(said):
                        return texts
                texts.append(self._text(said))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
            pass
        return texts


def _empty(wire: Wire) -> list[str]:
    """Where a flag tells the end, what stands beside it means nothing before."""
    usage = wire.usage
    ends = () if wire.final is not None else (*wire.finish, usage.prompt, usage.completion, usage.total)
    return [path for path in (*wire.error, *wire.reasoning, *ends) if path is not None]


def _can_be_typed(text: Path, others: Sequence[Path]) -> bool:
    """Whether the text is no part of another place, nor the other way round, and of a list only the first counts."""
    paths = [text, *others]
    return (
        all(path and isinstance(path[0], str) and not any(map(_is_later, path)) for path in paths)
        and all(_fit(one, other) for one in paths for other in others)
        and not any(path[: len(text)] == text[: len(path)] for path in others)
    )


def _is_later(step: str | int) -> bool:
    return isinstance(step, int) and step > 0


def _fit(one: Path, other: Path) -> bool:
    """Whether no value would have to be an object and a list."""
    kinds = next(((type(a), type(b)) for a, b in zip(one, other, strict=False) if a != b), (str, str))
    return kinds == (str, str)


def _struct(places: Sequence[Place]) -> type[msgspec.Struct]:
    """The type of a value by the places in it. Below a place that must be empty nothing can stand."""
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
    """A path as attributes: any key must do for a name."""
    return ".".join(f"_{str(step).encode().hex()}" for step in path)
