"""Defines what is stored of a response: its entries, their names, and the ids by which clients refer to them.

A response is two entries: the items of its own input and of its output, and the response object around them. The next
request needs the object of the response that it continues, which names those before it, and the items of all of them: a
history costs what its items cost, however many responses it consists of. The id of an item tells its response, unless a
backend of the same dialect made the id: such an item has an entry that names its response.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from adapters.openai_responses.turn_items import Item
from gateway.core.conversation import Json
from gateway.dialects.stateful import AnswerRecord

# Each name begins with the form of its entry: one that changes gets another name, so that gateways of two versions may
# use one store.
_RESPONSE: Final = "response.2:"
_ITEMS: Final = "items:"
_ITEM: Final = "item:"
# An item of the output has the index of its place behind the digits of its response, one of the input an `i` between.
_OWN_ITEM: Final = re.compile(r"[a-z]{1,8}_([0-9a-f]{24})(i?)[0-9]{1,6}")


class StoredResponse(msgspec.Struct, frozen=True):
    """The entry of a response.

    `ancestors` are the ids of the responses before it, the oldest first; `size` is the number of bytes of the items of
    all of them and of this one; `renewed_at` is the Unix time at which all of them had been written or renewed;
    `named_items` are the ids of its items that have an entry of their own. `response` is the JSON of the response
    object, whose `output` is empty.
    """

    ancestors: tuple[str, ...]
    size: int
    renewed_at: int
    named_items: tuple[str, ...]
    response: msgspec.Raw


class StoredItems(msgspec.Struct, frozen=True):
    """The entry with the items of a response: those of its own input, and its output."""

    # Any: msgspec cannot read the recursive Json type.
    input: list[dict[str, Any]]
    output: list[dict[str, Any]]


class StoredInput(msgspec.Struct, frozen=True):
    """What the record of a response needs of its request: the items of its own `input`, and the responses before it
    with their bytes and the time at which they were renewed."""

    items: Sequence[Item]
    ancestors: tuple[str, ...]
    size: int
    renewed_at: int


def response_id(unique: str) -> str:
    """Returns the id of the response with these digits."""
    return f"resp_{unique}"


def response_entry(identity: str) -> str:
    """Returns the name of the entry of a response."""
    return _RESPONSE + identity


def items_entry(identity: str) -> str:
    """Returns the name of the entry with the items of a response."""
    return _ITEMS + identity


def item_entry(identity: str) -> str:
    """Returns the name of the entry that names the response of an item."""
    return _ITEM + identity


def owner_of(item: str) -> tuple[str, bool] | None:
    """Returns the response of an item, and whether the item belongs to its input. None: the gateway did not make the
    id."""
    found = _OWN_ITEM.fullmatch(item)
    return None if found is None else (response_id(found[1]), bool(found[2]))


def record(unique: str, stored: StoredInput, response: dict[str, Json], now: int, renew_s: float) -> AnswerRecord:
    """Returns what is stored of a complete response: its own entry last, without which nothing refers to the others."""
    identity = response_id(unique)
    named = tuple(_named_items(response))
    items = msgspec.json.encode({"input": stored.items, "output": response["output"]})
    written = msgspec.json.encode({**response, "output": []})
    size = stored.size + len(items)
    renews = not stored.ancestors or now - stored.renewed_at >= renew_s
    renewed_at = now if renews else stored.renewed_at
    entry = StoredResponse(stored.ancestors, size, renewed_at, named, msgspec.Raw(written))
    earlier = [name(ancestor) for ancestor in stored.ancestors for name in (response_entry, items_entry)]
    return AnswerRecord(
        (
            (items_entry(identity), items),
            *[(item_entry(name), identity.encode()) for name in named],
            (response_entry(identity), msgspec.json.encode(entry)),
        ),
        tuple(earlier) if renews else (),
        size,
        len(stored.ancestors) + 1,
    )


def entries_of(identity: str, stored: StoredResponse) -> tuple[str, ...]:
    """Returns the names of all entries of a response, its own first."""
    return response_entry(identity), items_entry(identity), *map(item_entry, stored.named_items)


def read_response(entry: bytes) -> StoredResponse:
    """Returns the entry of a response."""
    return msgspec.json.decode(entry, type=StoredResponse)


def read_items(entry: bytes) -> StoredItems:
    """Returns the items of a response."""
    return _ITEMS_DECODER.decode(entry)


def whole_response(stored: StoredResponse, items: bytes) -> bytes:
    """Returns the JSON of a response object with its output, from its two entries."""
    parts = _PARTS_DECODER.decode(stored.response)
    return msgspec.json.encode({**parts, "output": _PARTS_DECODER.decode(items)["output"]})


def _named_items(response: dict[str, Json]) -> Iterator[str]:
    output = response["output"]
    assert isinstance(output, list)  # as the encoder writes it
    for item in output:
        identity = item.get("id") if isinstance(item, dict) else None
        if isinstance(identity, str) and owner_of(identity) is None:
            yield identity


_ITEMS_DECODER: Final = msgspec.json.Decoder(StoredItems)
_PARTS_DECODER: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
