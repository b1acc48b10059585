"""Finds where the text and the reasoning of an answer stand, and whether its pieces or the text so far are sent."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, Final

import msgspec

from adapters.proto.backend.field_getters import field_conditions
from adapters.proto.backend.options import Mode
from adapters.proto.backend.places import Kind
from adapters.proto.learn.exchange import KnownAnswer
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, spots_of, text_of
from adapters.proto.learn.spots import Spot, Value

When = dict[str, bool | int | str]
_MODES: Final[tuple[Mode, ...]] = ("delta", "total")


class TextPlace(msgspec.Struct, frozen=True):
    """A spot that holds text of an answer, in pieces or as the text so far, of the items for which `when` holds."""

    spot: Spot
    mode: Mode
    when: When


class LearnedText(msgspec.Struct, frozen=True):
    """The spots that hold the text; several where its pieces stand at several."""

    places: tuple[TextPlace, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def find_text(
    responses: Sequence[RecordedResponse],
    wanted: Callable[[KnownAnswer], str],
    what: str,
) -> LearnedText:
    """Returns where the wanted text of every answer stands. `what` names it for a doubt."""
    texts = [wanted(response.known) for response in responses]
    if not any(texts):
        return LearnedText()
    spots = spots_of(responses, "text", "bytes")
    tried = [pair for spot in spots for pair in _tried(spot, responses, texts)]
    found = [place for place, others in tried if not others]
    if found:
        return _chosen(found, responses, what)
    for pair in combinations(spots, 2):
        if all(_interleaved(pair, one) == text for one, text in zip(responses, texts, strict=True)):
            return LearnedText(tuple(TextPlace(spot, "delta", {}) for spot in pair))
    fewest = min((others for _, others in tried), key=len, default=())
    if not 0 < len(fewest) * 2 < sum(map(bool, texts)):
        return LearnedText((), (Doubt("open", f"read.{what}", "no field holds it in every response"),))
    learned = _chosen([place for place, others in tried if others == fewest], responses, what)
    reason = f"{learned.places[0].spot.text} holds it in the other responses, but not in {', '.join(fewest)}"
    return LearnedText(learned.places, (Doubt("open", f"read.{what}", reason), *learned.doubts))


def _chosen(found: Sequence[TextPlace], responses: Sequence[RecordedResponse], what: str) -> LearnedText:
    plain = [place for place in found if not place.when] or found
    chosen = plain[0]
    others = tuple(dict.fromkeys(place.spot.text for place in plain if place.spot != chosen.spot))
    doubts = [Doubt("chosen", f"read.{what}", f"{chosen.spot.text}; as well fit", others)] if others else []
    if any(place.spot == chosen.spot and place.mode != chosen.mode for place in plain):
        reason = "no response has two pieces of it, so that pieces and the text so far look alike"
        doubts.append(Doubt("chosen", f"read.{what}.mode", f'"{chosen.mode}"; {reason}', ('"total"',)))
    if chosen.when:
        same = [place.when for place in plain if place.spot == chosen.spot and place.when != chosen.when]
        if same:
            reason = f"{chosen.when}; as well fit"
            doubts.append(Doubt("chosen", f"read.{what}.when", reason, tuple(map(str, same))))
    return LearnedText((chosen,), tuple(doubts))


def _tried(
    spot: Spot, responses: Sequence[RecordedResponse], texts: Sequence[str]
) -> Iterator[tuple[TextPlace, tuple[str, ...]]]:
    """Yields the modes and conditions with which a spot may hold the text, each with the names of the responses in
    which it does not."""
    for when in ({}, *_filters(spot, responses)):
        kept = [_kept(spot, when, response) for response in responses]
        for mode in _MODES:
            fits = [_joined(values, mode) == text for values, text in zip(kept, texts, strict=True)]
            others = tuple(one.name for one, fit in zip(responses, fits, strict=True) if not fit)
            yield TextPlace(spot, mode, when), others


def _joined(values: Sequence[Value], mode: Mode) -> str | None:
    """Returns the text that the values say; None: they are no text so far."""
    pieces = [value.value for value in values]
    if mode == "delta":
        return _whole(pieces)
    texts = [text_of(piece) for piece in pieces]
    grows = all(later.startswith(before) for before, later in pairwise(texts))
    return (texts[-1] if texts else "") if grows else None


def _whole(pieces: Sequence[Any]) -> str:
    """Returns pieces as one text; a character may be split over two pieces of bytes."""
    if pieces and all(isinstance(piece, bytes) for piece in pieces):
        return text_of(b"".join(pieces))
    return "".join(map(text_of, pieces))


def _interleaved(spots: Sequence[Spot], response: RecordedResponse) -> str:
    values = sorted((value for spot in spots for value in response.of(spot)), key=lambda value: value.message)
    return _whole([value.value for value in values])


def _kept(spot: Spot, when: When, response: RecordedResponse) -> list[Value]:
    values = response.of(spot)
    if not when or not values:
        return values
    holds = field_conditions(when, values[0].item.DESCRIPTOR, "when")
    return [value for value in values if holds(value.item)]


def _filters(spot: Spot, responses: Sequence[RecordedResponse]) -> Iterator[When]:
    """Yields conditions on the fields beside a spot that differ between its values."""
    if spot.tensor:
        return
    items = [value.item for response in responses for value in response.of(spot)]
    kind: Kind = items[0].DESCRIPTOR
    above = spot.path.rpartition(".")[0]
    for path, field in _beside(kind, above):
        if path == spot.path or field.is_repeated:
            continue
        if field.type == field.TYPE_BOOL:
            yield {path: False}
            yield {path: True}
        elif field.enum_type is not None:
            for value in field.enum_type.values:
                yield {path: str(value.name)}
        elif field.has_presence:
            yield {path: "unset"}
            yield {path: "set"}


def _beside(kind: Kind, above: str) -> Iterator[tuple[str, Any]]:
    """Yields the fields of an item, and those of the messages on the way to a spot in it."""
    way = ""
    for name in ("", *(above.split(".") if above else ())):
        if name:
            if name not in kind.fields_by_name or kind.fields_by_name[name].message_type is None:
                return
            kind, way = kind.fields_by_name[name].message_type, f"{way}{name}."
        yield from ((f"{way}{field.name}", field) for field in kind.fields)
