"""Finds the dialect of a saved request by its shape: the field with its history, and what only that dialect has."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.dialect import Dialect
from gateway.dialects.document import read_saved
from gateway.registry import load_dialect, load_dialects


def saved_dialect(data: bytes, name: str | None = None) -> Dialect:
    """Returns the dialect of this name; None: the one of which the request in a file can be.

    A request in which nothing tells it is one of the default dialect, or of the first that has its history field.
    Raises SettingsError for an unknown name, and InvalidRequest for a file that is no request, and for one that has
    parts of several dialects.
    """
    if name is not None:
        return load_dialect(name)
    dialects = _dialects()
    default = dialects[0]
    bare = data.lstrip()[:1] == b"["
    fields = read_saved(data, _history(default)).fields
    if bare:
        turns = fields[_history(default)]
        found = _widest({dialect: _shown(dialect, turns, _history(dialect)) for dialect in dialects})
    else:
        found = _of_request(fields, dialects)
    if len(found) > 1:
        names = " and of ".join(dialect.name for dialect in found)
        raise InvalidRequest(f"The request has fields of {names}; name its dialect with --dialect.")
    return found[0] if found else default


def _of_request(fields: dict[str, Json], dialects: Sequence[Dialect]) -> list[Dialect]:
    """Returns the dialects of which a whole request may be. One that is alone with its history field needs no sign; of
    several without a sign it is the first."""
    found = [dialect for dialect in dialects if _history(dialect) in fields]
    return found if len(found) < 2 else _widest({dialect: _shown(dialect, fields) for dialect in found}) or found[:1]


def _widest(shown: Mapping[Dialect, frozenset[str]]) -> list[Dialect]:
    """Returns the first dialect that has every sign which a request shows of any, since two may share some; without
    one, all dialects of which it shows a sign."""
    found = [dialect for dialect, signs in shown.items() if signs]
    return [dialect for dialect in found if all(shown[dialect] >= shown[other] for other in found)][:1] or found


@cache
def _dialects() -> tuple[Dialect, ...]:
    """Returns all dialects; the first is the default one."""
    return load_dialects().dialects


def _shown(dialect: Dialect, value: Json, place: str = "") -> frozenset[str]:
    """Returns the signs of the dialect that a value at this place has."""
    return dialect.signs.intersection(_paths(value, place))


def _history(dialect: Dialect) -> str:
    return dialect.paths.param("messages")


def _paths(value: Json, place: str = "") -> Iterator[str]:
    """Yields the path of every field below a value, and for each `type` its path with the type."""
    match value:
        case dict():
            for name, inner in value.items():
                path = f"{place}.{name}" if place else name
                yield path
                if name == "type" and isinstance(inner, str):
                    yield f"{path}={inner}"
                yield from _paths(inner, path)
        case list():
            for inner in value:
                yield from _paths(inner, f"{place}[]")
        case _:
            pass
