"""Defines a recorded response: its messages, what stands in them, and what the client got of it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from adapters.proto.backend.field_getters import Leaf, leaf_of
from adapters.proto.backend.tensors import find_tensor
from adapters.proto.learn.exchange import KnownAnswer, KnownError, RecordedExchange
from adapters.proto.learn.spots import Spot, Spots, Value, find_spots
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendProtocolError, OptionError
from gateway.core.events import Reason

_BYTES: Final = "BYTES"
# What tensors are made of.
_RAW: Final = re.compile(r"(^|\.)(outputs\[\]|raw_output_contents)")


class RecordedResponse(msgspec.Struct, frozen=True):
    """The messages of one response. `failed`: the carrier reports a failure. `presumed`: no answer is known; then
    `planted` and `asked_end` are those of the exchange. (Any: the class of the messages exists
    only at run time.)"""

    name: str
    conversation: Conversation
    messages: tuple[Any, ...]
    spots: Spots
    known: KnownAnswer
    failed: bool
    presumed: bool = False
    planted: str = ""
    asked_end: Reason | None = None

    @property
    def complete(self) -> bool:
        """Whether the response is an answer, not an error."""
        return self.known.error is None and not self.failed

    def of(self, spot: Spot) -> list[Value]:
        """Returns what stands at a spot, in order."""
        return self.spots.values.get(spot, [])


def view(exchange: RecordedExchange, messages: Sequence[Any], failed: bool) -> RecordedResponse:
    """Returns the response of an exchange with its spots, the tensors of an answer in KServe's form among them."""
    spots = find_spots(messages)
    for number, message in enumerate(messages):
        for spot, value in _tensors(message):
            spots.values.setdefault(spot, []).append(Value(number, message, value))
    if any(spot.tensor for spot in spots.values):
        spots.values = {
            spot: found for spot, found in spots.values.items() if spot.tensor or not _RAW.search(spot.text)
        }
    presumed = exchange.known is None
    known = exchange.known or KnownAnswer(error=KnownError() if failed else None)
    return RecordedResponse(
        exchange.name,
        exchange.conversation,
        tuple(messages),
        spots,
        known,
        failed,
        presumed,
        exchange.planted,
        exchange.asked_end,
    )


def _tensors(message: Any) -> Iterator[tuple[Spot, Any]]:
    kind = message.DESCRIPTOR
    for holder in (message, *(value for field, value in message.ListFields() if _is_message(field))):
        for output in _outputs(holder):
            leaf: Leaf = "bytes" if getattr(output, "datatype", "") == _BYTES else "integer"
            try:
                value = find_tensor(output.name, kind, "", {leaf: leaf}).get(message)
            except (OptionError, BackendProtocolError, AttributeError):
                continue
            if value:
                yield Spot((), output.name, tensor=True), value.decode("utf-8", "replace") if leaf == "bytes" else value


def _outputs(holder: Any) -> Iterable[Any]:
    field = holder.DESCRIPTOR.fields_by_name.get("outputs")
    messages = field is not None and field.is_repeated and field.message_type is not None
    outputs: Iterable[Any] = holder.outputs if messages else ()
    return outputs


def _is_message(field: Any) -> bool:
    return field.message_type is not None and not field.is_repeated


def spots_of(responses: Iterable[RecordedResponse], *leaves: Leaf) -> list[Spot]:
    """Returns the spots at which one of these leaves stands in any response, in the order of the messages."""
    found: dict[Spot, None] = {}
    for response in responses:
        for spot, values in response.spots.values.items():
            leaf = leaf_of(response.spots.fields[spot]) if not spot.tensor else _leaf(values[0].value)
            if leaf in leaves:
                found[spot] = None
    return list(found)


def _leaf(value: Any) -> Leaf:
    return "text" if isinstance(value, str) else "integer"


def text_of(value: Any) -> str:
    """Returns a text or bytes as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
