"""Finds the stored items that a request refers to: those before its own, and those that an `item_reference` names."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from adapters.openai_responses.client.stored_answer import CHAIN, owner_of
from adapters.openai_responses.turn_items import ITEMS, PREVIOUS, REFERENCE, Item, type_of
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.dialects.document import Document
from gateway.dialects.stored_chain import (
    Entries,
    StoredHistory,
    StoredInput,
    StoredItems,
    not_looked_up,
    read_items,
)

# A request may refer to so many responses. Each reference costs a look-up.
MOST_OWNERS: Final = 512


def stored_input(history: StoredHistory, items: Iterable[Json]) -> StoredInput:
    """Returns what is stored of the request with these items, whose references are resolved."""
    return history.with_own([item for item in items if isinstance(item, dict) and type_of(item) != REFERENCE])


def missing_entries(document: Document) -> tuple[str, ...]:
    """Returns the names of the entries that the document refers to and that have not been looked up yet. Entries may
    refer to further ones: nothing is missing once it is empty."""
    wanted: list[str] = []
    previous, items = document.fields.get(PREVIOUS), document.fields.get(ITEMS)
    if isinstance(previous, str):
        wanted += CHAIN.wanted(previous, document.stored)
    for _, identity in _references(items):
        wanted += _item_entries(identity, document.stored)
    return not_looked_up(wanted, document.stored)


def read_history(document: Document) -> StoredHistory:
    """Returns the items of the response that the request continues. Raises InvalidRequest for one that is not stored,
    and where a response before it no longer is: a shorter history would be another conversation."""
    previous = document.fields.get(PREVIOUS)
    if not isinstance(previous, str):
        return StoredHistory()
    chain = CHAIN.history(previous, document.stored, _broken)
    if chain is None:
        raise _not_found(previous)
    return chain


def resolved(items: Sequence[Json], history: StoredHistory, found: Entries) -> list[Json]:
    """Returns the items of the request with what each reference names in its place. One that names an item of the
    history before it stays as it is. Raises InvalidRequest for one that names nothing stored."""
    known = {item.get("id") for item in history.items}
    responses = frozenset(history.answers)
    read: dict[str, StoredItems] = {}
    out = [*items]
    for index, identity in _references(items):
        owner = owner_of(identity)
        if identity in known or (owner is not None and owner[0] in responses):
            continue
        item = _find(identity, found, read)
        if item is None:
            raise _item_not_found(f"{ITEMS}[{index}]")
        out[index] = item
    return out


def input_item_id(item: Item, response: str, index: int) -> str:
    """Returns the id by which a client refers to an item of a response's own input: that of the item, or a made one."""
    identity = item.get("id")
    if isinstance(identity, str) and identity:
        return identity
    prefix = "msg" if type_of(item) == "message" else "item"
    return f"{prefix}_{response.removeprefix('resp_')}i{index}"


def _references(items: object) -> Iterator[tuple[int, str]]:
    """Yields the ids of the references among the items, with their positions. Raises InvalidRequest for one without an
    id, and for more than can be looked up."""
    if not isinstance(items, list):
        return
    seen: set[str] = set()
    for index, item in enumerate(items):
        if not isinstance(item, dict) or type_of(item) != REFERENCE:
            continue
        identity = item.get("id")
        if not isinstance(identity, str) or not identity:
            param = f"{ITEMS}[{index}].id"
            raise InvalidRequest(f"{param} must be the id of an item.", param=param)
        owner = owner_of(identity)
        seen.add(identity if owner is None else owner[0])
        if len(seen) > MOST_OWNERS:
            message = f"input refers to items of more than {MOST_OWNERS} responses. Send the items themselves."
            raise InvalidRequest(message, param=f"{ITEMS}[{index}]")
        yield index, identity


def _item_entries(identity: str, found: Entries) -> Iterator[str]:
    owner = owner_of(identity)
    if owner is not None:
        yield CHAIN.items_entry(owner[0])
        return
    name = CHAIN.item_entry(identity)
    yield name
    if (response_of := found.get(name)) is not None:
        yield CHAIN.items_entry(response_of.decode())


def _find(identity: str, found: Entries, read: dict[str, StoredItems]) -> Item | None:
    """Returns the stored item with this id. `read` holds the items of each response that was looked through before."""
    owner = owner_of(identity)
    named = found.get(CHAIN.item_entry(identity)) if owner is None else None
    response = owner[0] if owner is not None else named.decode() if named is not None else ""
    if response not in read:
        entry = found.get(CHAIN.items_entry(response))
        if entry is None:
            return None
        read[response] = read_items(entry)
    if owner is not None and owner[1]:
        own = enumerate(read[response].input)
        return next((item for n, item in own if input_item_id(item, response, n) == identity), None)
    return next((item for item in read[response].output if item.get("id") == identity), None)


def _not_found(identity: str) -> InvalidRequest:
    message = f"Previous response with id '{identity[:80]}' not found. Send the whole history in input."
    return InvalidRequest(message, code="previous_response_not_found", param=PREVIOUS)


def _broken(identity: str) -> InvalidRequest:
    message = (
        f"The history of the response '{identity[:80]}' is incomplete: one before it was deleted or has expired. Send "
        "the whole history in input."
    )
    return InvalidRequest(message, code="previous_response_not_found", param=PREVIOUS)


def _item_not_found(param: str) -> InvalidRequest:
    message = f"{param} refers to an item that is not stored. Send the item itself; clients do so with `store: false`."
    return InvalidRequest(message, code="item_not_found", param=param)
