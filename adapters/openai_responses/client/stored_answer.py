"""Defines what is stored of a response: its entries, and the ids by which clients refer to them.

A response is a link of a chain (`gateway.dialects.stored_chain`). The id of an item tells its response, unless a
backend of the same dialect made the id: such an item has an entry that names its response.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.dialects.stateful import AnswerRecord
from gateway.dialects.stored_chain import Chain, StoredAnswer, StoredInput

CHAIN: Final = Chain("response.2:", "items:", "item:", "output")
# An item of the output has the index of its place behind the digits of its response, one of the input an `i` between.
_OWN_ITEM: Final = re.compile(r"[a-z]{1,8}_([0-9a-f]{24})(i?)[0-9]{1,6}")


def response_id(unique: str) -> str:
    """Returns the id of the response with these digits."""
    return f"resp_{unique}"


def owner_of(item: str) -> tuple[str, bool] | None:
    """Returns the response of an item, and whether the item belongs to its input. None: the gateway did not make the
    id."""
    found = _OWN_ITEM.fullmatch(item)
    return None if found is None else (response_id(found[1]), bool(found[2]))


def record(
    unique: str, stored: StoredInput, response: dict[str, Json], now: int, renew_s: float | None
) -> AnswerRecord:
    """Returns what is stored of a complete response."""
    return CHAIN.record(response_id(unique), stored, response, tuple(_named_items(response)), now, renew_s)


def whole_response(stored: StoredAnswer, items: bytes) -> bytes:
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


_PARTS_DECODER: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
