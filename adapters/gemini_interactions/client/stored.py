"""Defines what is stored of an interaction, finds what a request continues, and answers what clients ask of one."""

from collections.abc import Sequence
from typing import Final

import msgspec

from adapters.gemini_interactions.table import PREVIOUS
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.dialect import RequestHead, Route
from gateway.dialects.document import Document
from gateway.dialects.stateful import StoredQuery
from gateway.dialects.stored_chain import (
    Chain,
    DeleteAnswer,
    Entries,
    ReadAnswer,
    StoredAnswer,
    StoredHistory,
    not_looked_up,
    read_items,
)

STEPS: Final = "steps"
CHAIN: Final = Chain("interaction:", "steps:", "step:", STEPS)
CANCEL: Final = "/cancel"
_FLAGS: Final = {None: False, "true": True, "false": False}


def interaction_id(unique: str) -> str:
    """Returns the id of the interaction with these digits."""
    return f"int_{unique}"


def missing_entries(document: Document) -> tuple[str, ...]:
    """Returns the names of the entries that the document refers to and that have not been looked up yet."""
    previous = document.fields.get(PREVIOUS)
    if not isinstance(previous, str) or not previous:
        return ()
    return not_looked_up(CHAIN.wanted(previous, document.stored), document.stored)


def read_history(document: Document) -> StoredHistory:
    """Returns the steps of the interaction that the request continues. Raises InvalidRequest for one that is not
    stored, and where one before it no longer is."""
    previous = document.fields.get(PREVIOUS)
    if not isinstance(previous, str) or not previous:
        return StoredHistory()
    history = CHAIN.history(previous, document.stored, _broken)
    if history is None:
        message = f"Previous interaction with id '{previous[:80]}' not found. Send the whole history in input."
        raise InvalidRequest(message, code="interaction_not_found", param=PREVIOUS)
    return history


def stored_query(route: Route, head: RequestHead, identity: str) -> StoredQuery:
    """Returns the query of a request on a route of stored interactions. Raises InvalidRequest for a wrong parameter."""
    if route.method == "DELETE":
        return DeleteAnswer(CHAIN, identity, b"{}", _not_found)
    if route.path.endswith(CANCEL):
        return CancelInteraction(identity)
    if _flag(head, "stream") or head.parameter("last_event_id") is not None:
        raise Unsupported("stream is not supported: a stored interaction is sent whole.", param="stream")
    return ReadAnswer(CHAIN, identity, _with_input if _flag(head, "include_input") else _whole, _not_found)


class CancelInteraction:
    """Asks to end an interaction that runs. None does once it is stored."""

    def __init__(self, identity: str) -> None:
        self._id = identity

    def missing(self, found: Entries) -> Sequence[str]:
        return not_looked_up([CHAIN.answer_entry(self._id)], found)

    def encode(self, found: Entries) -> bytes:
        if CHAIN.stored(self._id, found) is None:
            raise _not_found(self._id)
        raise InvalidRequest(
            "The interaction has ended, so that it cannot be cancelled. Close the connection of one that runs instead.",
            code="unsupported_operation",
        )

    def deletes(self, found: Entries) -> Sequence[str]:
        return ()


def _whole(stored: StoredAnswer, entry: bytes) -> bytes:
    """Returns the JSON of an interaction with its whole timeline: the steps of its own input before those of the
    answer. Source: Gemini API, "Interactions API: Breaking changes migration guide (May 2026)"."""
    items = read_items(entry)
    return msgspec.json.encode({**_FIELDS.decode(stored.response), STEPS: [*items.input, *items.output]})


def _with_input(stored: StoredAnswer, entry: bytes) -> bytes:
    return b'%b,"input":%b}' % (_whole(stored, entry)[:-1], msgspec.json.encode(read_items(entry).input))


def _flag(head: RequestHead, name: str) -> bool:
    value = _FLAGS.get(head.parameter(name))
    if value is None:
        raise InvalidRequest(f"{name} must be true or false.", param=name)
    return value


def _not_found(identity: str) -> InvalidRequest:
    message = f"Interaction with id '{identity[:80]}' not found."
    return InvalidRequest(message, status=404, code="interaction_not_found")


def _broken(identity: str) -> InvalidRequest:
    message = (
        f"The history of the interaction '{identity[:80]}' is incomplete: one before it was deleted or has expired. "
        "Send the whole history in input."
    )
    return InvalidRequest(message, code="interaction_not_found", param=PREVIOUS)


_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
