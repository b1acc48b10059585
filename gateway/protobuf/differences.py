"""Compares two versions of a schema: what was added, removed, renumbered and retyped."""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from gateway.protobuf.symbols import Field, Method, Symbols

_Member: TypeAlias = Method | Field | int
_Group: TypeAlias = (
    Mapping[str, Mapping[str, Method]] | Mapping[str, Mapping[str, Field]] | Mapping[str, Mapping[str, int]]
)
Change = Literal["added", "removed", "renumbered", "retyped", "moved"]


class Difference(msgspec.Struct, frozen=True):
    """One difference. `place` is the full name of a symbol or of its member; `before` and `after` are numbers or types,
    empty where there is none. A field that is `moved` has another oneof."""

    place: str
    change: Change
    before: str = ""
    after: str = ""

    def text(self) -> str:
        """Returns one line: `acme.Echo.text: renumbered: 1 -> 4`."""
        if self.change in ("added", "removed"):
            values = self.before or self.after
        else:
            values = f"{self.before or 'none'} -> {self.after or 'none'}"
        return ": ".join(part for part in (self.place, self.change, values) if part)


def differences(before: Symbols, after: Symbols) -> tuple[Difference, ...]:
    """Returns the differences of the second schema from the first. A symbol that exists in one of them is one
    difference, whatever members it has."""
    return (
        *_symbols(before.services, after.services, "/"),
        *_symbols(before.messages, after.messages, "."),
        *_symbols(before.enums, after.enums, "."),
        *_extensions(before.extensions, after.extensions),
    )


def _symbols(before: _Group, after: _Group, mark: str) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        if name not in before or name not in after:
            yield Difference(name, "added" if name in after else "removed")
            continue
        old, new = before[name], after[name]
        for member in dict.fromkeys([*old, *new]):
            yield from _members(f"{name}{mark}{member}", old.get(member), new.get(member))


def _extensions(
    before: Mapping[str, Mapping[str, Field]], after: Mapping[str, Mapping[str, Field]]
) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, {}), after.get(name, {})
        for member in dict.fromkeys([*old, *new]):
            yield from _members(f"{name}.[{member}]", old.get(member), new.get(member))


def _members(place: str, before: _Member | None, after: _Member | None) -> Iterator[Difference]:
    match before, after:
        case None, _:
            yield Difference(place, "added", "", _text(after))
        case _, None:
            yield Difference(place, "removed", _text(before), "")
        case Field(), Field():
            yield from _fields(place, before, after)
        case int(), _:
            yield from _pair(place, "renumbered", _text(before), _text(after))
        case _:
            yield from _pair(place, "retyped", _text(before), _text(after))


def _fields(place: str, before: Field, after: Field) -> Iterator[Difference]:
    yield from _pair(place, "renumbered", str(before.number), str(after.number))
    yield from _pair(place, "retyped", before.type, after.type)
    yield from _pair(place, "moved", before.oneof, after.oneof)


def _pair(place: str, change: Change, before: str, after: str) -> Iterator[Difference]:
    if before != after:
        yield Difference(place, change, before, after)


def _text(member: _Member | None) -> str:
    match member:
        case Field():
            return f"{member.type} = {member.number}"
        case Method():
            return f"({member.request}) returns ({member.response})"
        case _:
            return "" if member is None else str(member)
