"""Answers what clients ask of a stored response: the response itself, its input, or to delete it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from adapters.openai_responses.client.stored_answer import CHAIN, whole_response
from adapters.openai_responses.client.stored_history import input_item_id
from adapters.openai_responses.response_models import DeletedResponse
from adapters.openai_responses.turn_items import Item, type_of
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.dialect import RequestHead, Route
from gateway.dialects.stateful import StoredQuery
from gateway.dialects.stored_chain import (
    DeleteAnswer,
    Entries,
    ReadAnswer,
    StoredAnswer,
    not_looked_up,
    read_items,
)

# Of a page of items, as OpenAI's reference gives them.
_USUAL: Final = 20
_MOST: Final = 100
_DIGITS: Final = re.compile("[0-9]{1,3}")
_ORDERS: Final = ("asc", "desc")
INPUT_ITEMS: Final = "/input_items"


def stored_query(route: Route, head: RequestHead, identity: str) -> StoredQuery:
    """Returns the query of a request on a route of stored responses. Raises InvalidRequest for a wrong parameter."""
    if route.method == "DELETE":
        return DeleteAnswer(CHAIN, identity, msgspec.json.encode(DeletedResponse(id=identity)), _not_found)
    if route.path.endswith(INPUT_ITEMS):
        return ListInputItems(identity, _page(head))
    if head.parameter("stream") == "true":
        raise Unsupported("stream is not supported: a stored response is sent whole.", param="stream")
    return ReadAnswer(CHAIN, identity, whole_response, _not_found)


class Page(msgspec.Struct, frozen=True):
    """A part of a list: so many items at most, in this order, behind the one with the id `after`."""

    limit: int = _USUAL
    descending: bool = True
    after: str | None = None


class ListInputItems:
    """Asks for the items that the response answered: those of its own input, and all items before them."""

    def __init__(self, identity: str, page: Page) -> None:
        self._id = identity
        self._page = page

    def missing(self, found: Entries) -> Sequence[str]:
        # Of the responses before it their output is listed, too; its own is not.
        return not_looked_up(CHAIN.wanted(self._id, found), found)

    def encode(self, found: Entries) -> bytes:
        items = list(_listed(self._id, _response(self._id, found), found))
        if self._page.descending:
            items.reverse()
        start = self._start(items)
        page = items[start : start + self._page.limit]
        return msgspec.json.encode(
            {
                "object": "list",
                "data": page,
                "first_id": page[0]["id"] if page else None,
                "last_id": page[-1]["id"] if page else None,
                "has_more": start + len(page) < len(items),
            }
        )

    def deletes(self, found: Entries) -> Sequence[str]:
        return ()

    def _start(self, items: Sequence[Item]) -> int:
        if self._page.after is None:
            return 0
        for position, item in enumerate(items):
            if item["id"] == self._page.after:
                return position + 1
        raise InvalidRequest(f"after names no item of the list: '{self._page.after[:80]}'.", status=404, param="after")


def _listed(identity: str, stored: StoredAnswer, found: Entries) -> Iterator[Item]:
    """Yields the items in their order, each with an id. Raises InvalidRequest where a response before it is missing."""
    for response in (*stored.ancestors, identity):
        stands = found.get(CHAIN.items_entry(response))
        if stands is None:
            message = f"The items before the response '{identity[:80]}' are no longer stored."
            raise InvalidRequest(message, status=404, code="response_not_found")
        own = read_items(stands)
        for index, item in enumerate(own.input):
            yield _listed_item(item, input_item_id(item, response, index))
        if response != identity:
            yield from (_listed_item(item, str(item.get("id"))) for item in own.output)


def _listed_item(item: Item, identity: str) -> Item:
    """Returns an item in the form that every client reads: with a type, and a message with an array of parts."""
    kind = type_of(item)
    shown = {**item, "id": identity, "type": kind}
    content = item.get("content")
    if kind == "message" and isinstance(content, str):
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        extra: dict[str, Json] = {"annotations": []} if part == "output_text" else {}
        shown["content"] = [{"type": part, "text": content, **extra}]
    if kind == "message":
        shown.setdefault("status", "completed")
    return shown


def _response(identity: str, found: Entries) -> StoredAnswer:
    stored = CHAIN.stored(identity, found)
    if stored is None:
        raise _not_found(identity)
    return stored


def _not_found(identity: str) -> InvalidRequest:
    message = f"Response with id '{identity[:80]}' not found."
    return InvalidRequest(message, status=404, code="response_not_found")


def _page(head: RequestHead) -> Page:
    """Reads the parameters of a list. Raises InvalidRequest."""
    limit, order, after = (head.parameter(name) for name in ("limit", "order", "after"))
    if limit is not None and not (_DIGITS.fullmatch(limit) and 1 <= int(limit) <= _MOST):
        raise InvalidRequest(f"limit must be a whole number from 1 to {_MOST}.", param="limit")
    if order is not None and order not in _ORDERS:
        raise InvalidRequest("order must be asc or desc.", param="order")
    if head.parameter("before") is not None:
        raise Unsupported("before is not supported: turn the order round and use after.", param="before")
    return Page(_USUAL if limit is None else int(limit), order != "asc", after)
