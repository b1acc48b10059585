"""Stores the records of answers in a dict, and looks them up for later requests."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.events import Event, Finish, ResponseStart, TextDelta
from gateway.dialect import AnswerHead, ClientRequest, RequestHead
from gateway.dialects.document import read_document
from gateway.dialects.stateful import AnswerRecord

DIALECT: Final = OpenAIResponsesDialect()
HELLO: Final[tuple[Event, ...]] = (ResponseStart(), TextDelta("Hello."), Finish("stop"))


class Shelf:
    """The entries of some responses. `steps` counts the rounds of the last look-up, and `looked_up` the bytes that it
    found; `now` is the Unix time."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.steps = 0
        self.looked_up = 0
        self.now = 1
        self._answers = 0

    def read(self, input: Any = "Hello", **fields: Any) -> ClientRequest:
        """Return a request as the gateway decodes it."""
        document = read_document(json.dumps({"model": "m", "input": input, **fields}).encode())
        self.steps = self.looked_up = 0
        while names := DIALECT.missing_entries(document):
            self.steps += 1
            found = {name: self.entries.get(name) for name in names}
            self.looked_up += sum(len(entry) for entry in found.values() if entry is not None)
            document = msgspec.structs.replace(document, stored={**document.stored, **found})
        return DIALECT.decode(document, RequestHead("/v1/responses"))

    def record(self, request: ClientRequest, events: Sequence[Event] = HELLO) -> tuple[str, AnswerRecord]:
        """Return the id of the answer of these events to a request, and its record."""
        self._answers += 1
        head = AnswerHead(f"{self._answers:024x}", self.now, "m", lambda: self.now, stored=True)
        encoder = DIALECT.stream_encoder(request, head)
        encoder.feed(events)
        return f"resp_{head.unique}", encoder.record(100)

    def answer(self, input: Any = "Hello", events: Sequence[Event] = HELLO, **fields: Any) -> str:
        """Store the answer of these events to a request; return its id."""
        identity, record = self.record(self.read(input, **fields), events)
        self.entries.update(record.entries)
        return identity

    def query(self, method: str, path: str, identity: str, parameters: str = "") -> tuple[Any, Sequence[str]]:
        """Return the answer of a query, and what it deletes."""
        routes = [route for route in DIALECT.routes if (route.method, route.path) == (method, path)]
        asked = DIALECT.stored_query(routes[0], RequestHead(path, parameters.encode()), identity)
        found: dict[str, bytes | None] = {}
        while names := asked.missing(found):
            found |= {name: self.entries.get(name) for name in names}
        return json.loads(asked.encode(found)), asked.deletes(found)
