"""Replaces identifiers that a provider refuses, one to one, by derived ones, and restores them in the response."""

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec

from gateway.core.events import Event, ToolCallStart
from gateway.providers.profile import LEAST_ROOM, Alphabet

_DERIVED_LENGTH = 24


class IdentifierMap(msgspec.Struct, frozen=True):
    """Maps the client's renamed identifiers of one request to those that were sent."""

    call_ids: Mapping[str, str] = {}
    names: Mapping[str, str] = {}

    def restore(self, events: list[Event]) -> list[Event]:
        """Returns the events with the client's own identifiers."""
        if not (self.call_ids or self.names) or ToolCallStart not in map(type, events):
            return events
        ids = {sent: own for own, sent in self.call_ids.items()}
        names = {sent: own for own, sent in self.names.items()}
        return [
            msgspec.structs.replace(event, id=ids.get(event.id, event.id), name=names.get(event.name, event.name))
            if isinstance(event, ToolCallStart)
            else event
            for event in events
        ]


def rename(identifiers: Iterable[str], alphabet: Alphabet) -> dict[str, str]:
    """Maps the identifiers that the alphabet refuses, one to one, to acceptable ones.

    The same input gives the same names, so that prompt caches keep working. A readable beginning is kept where the
    length allows it.
    """
    pattern = _pattern(alphabet)
    known = dict.fromkeys(identifiers)
    taken = {identifier for identifier in known if pattern.fullmatch(identifier)}
    renamed: dict[str, str] = {}
    for identifier in known:
        if identifier in taken:
            continue
        attempt = 0
        while (derived := _derive(identifier, alphabet, attempt)) in taken:
            attempt += 1
        taken.add(derived)
        renamed[identifier] = derived
    return renamed


def _pattern(alphabet: Alphabet) -> re.Pattern[str]:
    anything = alphabet.characters is None
    one = "." if anything else f"[{alphabet.characters}]"
    first = f"(?=[{alphabet.first}])" if alphabet.first else ""
    longest = "" if alphabet.longest is None else alphabet.longest
    return re.compile(f"{first}{one}{{{alphabet.shortest},{longest}}}", re.DOTALL)


def _derive(identifier: str, alphabet: Alphabet, attempt: int) -> str:
    """Appends letters and digits of a digest, which every alphabet accepts, to a readable beginning.

    The beginning is the acceptable part of the identifier, where the length allows it.
    """
    digest = hashlib.sha256(f"{attempt}:{identifier}".encode("utf-8", "surrogatepass")).hexdigest()
    longest = alphabet.longest or 64
    if longest < _DERIVED_LENGTH or alphabet.shortest > LEAST_ROOM:
        return f"t{digest}"[:longest]
    allowed = re.compile(f"[{alphabet.characters}]" if alphabet.characters else ".", re.DOTALL)
    kept = "".join(character if allowed.match(character) else "_" for character in identifier)
    if alphabet.first and not re.match(f"[{alphabet.first}]", kept):
        kept = f"t{kept}"
    derived = f"{kept[: longest - LEAST_ROOM - 1]}_{digest[:LEAST_ROOM]}"
    return "".join(character for character in derived if allowed.match(character))
