"""Stores the records of answers in a dict, and looks them up for later requests."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapters.gemini_interactions.client.dialect import GeminiInteractionsDialect
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.core.events import Event, Finish, ResponseStart, TextDelta
from gateway.dialect import AnswerHead, ClientRequest, RequestHead
from gateway.dialects.document import read_document
from gateway.dialects.stateful import AnswerRecord

DIALECT: Final = GeminiInteractionsDialect()
HELLO: Final[tuple[Event, ...]] = (ResponseStart(), TextDelta("Hello."), Finish("stop"))
PATH: Final = "/v1beta/interactions"


class Shelf:
    """The entries of some interactions."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self._answers = 0

    def read(self, input: Any = "Hello", **fields: Any) -> ClientRequest:
        """A request as the gateway decodes it."""
        document = read_document(json.dumps({"model": "m", "input": input, **fields}).encode())
        while names := DIALECT.missing_entries(document):
            found = {name: self.entries.get(name) for name in names}
            document = msgspec.structs.replace(document, stored={**document.stored, **found})
        return DIALECT.decode(document, RequestHead(PATH))

    def record(self, request: ClientRequest, events: Sequence[Event] = HELLO) -> tuple[str, AnswerRecord]:
        """The id of the answer of these events to a request, and its record."""
        self._answers += 1
        head = AnswerHead(f"{self._answers:024x}", 1, "m", lambda: 1, stored=True)
        encoder = DIALECT.stream_encoder(request, head)
        encoder.feed(events)
        return f"int_{head.unique}", encoder.record(100)

    def answer(self, input: Any = "Hello", events: Sequence[Event] = HELLO, **fields: Any) -> str:
        """Stores the answer of these events to a request, and returns its id."""
        identity, record = self.record(self.read(input, **fields), events)
        self.entries.update(record.entries)
        return identity

    def query(self, method: str, identity: str, parameters: str = "", behind: str = "") -> tuple[Any, Sequence[str]]:
        """The answer of a query, and what it deletes."""
        path = f"{PATH}/{{id}}{behind}"
        (route,) = [route for route in DIALECT.routes if (route.method, route.path) == (method, path)]
        asked = DIALECT.stored_query(route, RequestHead(path, parameters.encode()), identity)
        found: dict[str, bytes | None] = {}
        while names := asked.missing(found):
            found |= {name: self.entries.get(name) for name in names}
        return json.loads(asked.encode(found)), asked.deletes(found)


def read(input: Any = "Hello", **fields: Any) -> Conversation:
    """The conversation of a request."""
    return Shelf().read(input, **fields).conversation


def refused(input: Any = "Hello", **fields: Any) -> InvalidRequest:
    """The error of a request."""
    try:
        read(input, **fields)
    except InvalidRequest as error:
        return error
    raise AssertionError("the request is not refused")
