"""Finds where the calls of an answer stand, whole or in pieces, and how pieces belong to their call."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from adapters.proto.backend.field_getters import Leaf
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, spots_of, text_of
from adapters.proto.learn.spots import Spot, Value, Way
from adapters.proto.learn.value_search import json_value
from gateway.core.conversation import Json

_MODES: Final = ("whole", "delta", "total")
_OBJECTS: Final[tuple[Leaf, ...]] = ("struct", "map", "message")
# By a number a piece is found sooner than by an id, which may be missing in later pieces.
_KEYS: Final[tuple[Leaf, ...]] = ("integer", "text")


class CallPlace(msgspec.Struct, frozen=True):
    """The spots of the parts of a call, all of one item. `key` is that of the number or the id of the call to which a
    piece belongs."""

    name: Spot
    arguments: Spot
    mode: str
    key: Spot | None = None
    id: Spot | None = None


class LearnedCalls(msgspec.Struct, frozen=True):
    """Where the calls stand; None: nowhere."""

    place: CallPlace | None = None
    doubts: tuple[Doubt, ...] = ()


def find_calls(responses: Sequence[RecordedResponse]) -> LearnedCalls:
    """Returns where the calls of every answer stand."""
    if not any(response.known.calls for response in responses):
        return LearnedCalls()
    found = list(_fitting(responses))
    if not found:
        return LearnedCalls(None, (Doubt("open", "read.call", "no item holds the names and arguments of the calls"),))
    chosen = found[0]
    others = tuple(dict.fromkeys(place.arguments.text for place in found if place.arguments != chosen.arguments))
    doubts = [Doubt("chosen", "read.call", f"{chosen.arguments.text}; as well fit", others)] if others else []
    modes = {place.mode for place in found if (place.name, place.arguments) == (chosen.name, chosen.arguments)}
    if chosen.mode == "whole" and len(modes) > 1:
        reason = "no call has two pieces, so that whole calls and pieces look alike"
        doubts.append(Doubt("chosen", "read.call.mode", f'"whole"; {reason}', ('"delta"',)))
    call_id, doubt = _id_spot(responses, chosen)
    place = msgspec.structs.replace(chosen, id=call_id)
    return LearnedCalls(place, (*doubts, *doubt))


def _fitting(responses: Sequence[RecordedResponse]) -> Iterator[CallPlace]:
    texts = spots_of(responses, "text")
    held = spots_of(responses, "text", "bytes", *_OBJECTS)
    for name in texts:
        for arguments in held:
            if arguments == name or arguments.each != name.each or name.tensor or arguments.tensor:
                continue
            for mode in _MODES:
                for key in _keys(responses, name.each, mode):
                    place = CallPlace(name, arguments, mode, key)
                    if all(_shows(place, response) for response in responses):
                        yield place


def _keys(responses: Sequence[RecordedResponse], each: Way, mode: str) -> Iterator[Spot | None]:
    if mode == "whole":
        yield None
        return
    for leaf in _KEYS:
        yield from (spot for spot in spots_of(responses, leaf) if spot.each == each and not spot.tensor)


def _shows(place: CallPlace, response: RecordedResponse) -> bool:
    """Returns whether the spots hold the names and the arguments of the calls."""
    calls = response.known.calls
    made = _calls(place, response)
    return len(made) == len(calls) and all(
        name == call.name and same_json(arguments, call.arguments)
        for (name, arguments), call in zip(made, calls, strict=True)
    )


def _calls(place: CallPlace, response: RecordedResponse) -> list[tuple[str, Any]]:
    names = _by_item(response.of(place.name))
    arguments = _by_item(response.of(place.arguments))
    items = _in_order(response, place)
    if place.mode == "whole":
        return [(str(names[item]), arguments.get(item, "")) for item in items if item in names]
    keys = _by_item(response.of(place.key)) if place.key is not None else {}
    found: dict[Any, list[Any]] = {}
    last: Any = None
    for item in items:
        # A number is 0 where it is missing; without an id the piece belongs to the call before it.
        textual = any(isinstance(key, str) for key in keys.values())
        last = keys.get(item, last if textual else 0)
        call = found.setdefault(last, ["", ""])
        call[0] = call[0] or names.get(item, "")
        piece = arguments.get(item, "")
        if isinstance(piece, Message | Mapping):
            return []
        call[1] = text_of(piece) if place.mode == "total" and piece else call[1] + text_of(piece)
    return [(name, text) for name, text in found.values()]


def _by_item(values: Sequence[Value]) -> dict[int, Any]:
    return {id(value.item): value.value for value in values}


def _in_order(response: RecordedResponse, place: CallPlace) -> list[int]:
    """Returns the items that hold a name or arguments, in the order of the response."""
    spots = [spot for spot in (place.name, place.arguments, place.key) if spot is not None]
    order = [value for spot in spots[:2] for value in response.of(spot)]
    positions = {id(value.item): (value.message, value.order) for value in reversed(order)}
    return sorted(positions, key=lambda item: positions[item])


def same_json(recorded: Any, arguments: str) -> bool:
    """Returns whether the recorded arguments, as text, bytes, a Struct, a map or a message, are these. (Any: its class
    exists only at run time.)"""
    try:
        wanted: Json = json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        wanted = arguments
    match recorded:
        case str() | bytes():
            text = text_of(recorded)
            try:
                return bool((json.loads(text) if text.strip() else {}) == wanted)
            except ValueError:
                return text == arguments
        case Message():
            return bool(
                json_value(recorded) == wanted or MessageToDict(recorded, preserving_proto_field_name=True) == wanted
            )
        case Mapping():
            written = {str(key): _plain(value) for key, value in recorded.items()}
            return (
                isinstance(wanted, dict)
                and written.keys() == wanted.keys()
                and all(value == wanted[key] or str(value) == json.dumps(wanted[key]) for key, value in written.items())
            )
        case _:
            return False


def _plain(value: Any) -> Any:
    return json_value(value) if isinstance(value, Message) else text_of(value) if isinstance(value, bytes) else value


def _id_spot(responses: Sequence[RecordedResponse], place: CallPlace) -> tuple[Spot | None, tuple[Doubt, ...]]:
    """Returns the spot of the calls' ids: that of the ids which clients got, or one that is named like an id."""
    beside = [
        spot
        for spot in spots_of(responses, "text")
        if spot.each == place.name.each and spot not in (place.name, place.arguments)
    ]
    for spot in beside:
        if all(_distinct(response.of(spot)) == [call.id for call in response.known.calls] for response in responses):
            return spot, ()
    for spot in beside:
        counts = [len(_distinct(response.of(spot))) == len(response.known.calls) for response in responses]
        if all(counts) and spot.path.rpartition(".")[2].lower().endswith("id"):
            reason = "the id of a call by its name; the known ids of calls are others"
            return spot, (Doubt("assumed", f"read.call.id: {spot.text}", reason),)
    return None, ()


def _distinct(values: Sequence[Value]) -> list[Any]:
    return list(dict.fromkeys(value.value for value in values))


def call_rule(place: CallPlace, content: Sequence[Way]) -> tuple[Way, dict[str, Any]]:
    """Returns the rule of the calls, and the repeated fields to whose items it belongs. `content` are those of the
    texts: an item that may be a call or a text is a call where its message is there."""
    each, paths = place.name.each, _paths(place)
    if each and each not in content:
        return each[:-1], {"call": {"each": each[-1], **paths}}
    return each, {"when": {_holder(place) or place.name.path: "set"}, "call": paths}


def _paths(place: CallPlace) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if place.key is not None and place.key != place.id:
        parts["index"] = place.key.path
    if place.id is not None:
        parts["id"] = place.id.path
    parts |= {"name": place.name.path, "arguments": place.arguments.path}
    return parts if place.mode == "whole" else {**parts, "mode": place.mode}


def _holder(place: CallPlace) -> str:
    """Returns the message below which the name and the arguments stand."""
    name, arguments = place.name.path.split("."), place.arguments.path.split(".")
    shared = 0
    while shared < min(len(name), len(arguments)) - 1 and name[shared] == arguments[shared]:
        shared += 1
    return ".".join(name[:shared])
