"""Defines what a dialect adds to the contract whose answers may be stored, so that later requests refer to them.

What is stored are entries: bytes by name. Only the dialect knows what stands in them; the server looks them up for one
client at a time, so that nobody else finds them under the same names. The life of a request, beside that in
`gateway.dialect`:

1. `missing_entries` names what the request refers to, and `Document.stored` then has it, or says that there is none.
2. Behind the last events of a complete answer, `StoringEncoder.record` returns the entries of this answer. Only when
   they are written does the client get the end of its answer: it may continue it at once.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead, ClientRequest, Dialect, RequestHead, Route, StreamEncoder
from gateway.dialects.document import Document


class AnswerRecord(NamedTuple):
    """A complete answer as it is stored: entries by their names, in the order in which they are written. The answer is
    stored once the last one is.

    A request that continues the answer needs the entries of so many answers as `links` says, which have `size` bytes.
    `renewed` names those of earlier answers whose time to live begins anew.
    """

    entries: tuple[tuple[str, bytes], ...]
    renewed: tuple[str, ...]
    size: int
    links: int


class StoringEncoder(StreamEncoder, Protocol):
    """Extends a StreamEncoder whose answer may be stored. A whole answer is made by the same encoder."""

    def record(self, renew_s: float | None) -> AnswerRecord:
        """Returns the entries to store. Called once, behind the last events and before `close` or `whole`. The entries
        that the answer continues are renewed where they were not for `renew_s` seconds. None: nothing is renewed, and
        nothing stored but what a request needs that continues the answer."""
        ...

    def deny(self, notice: Notice) -> None:
        """Makes the rest of the answer say that it is not stored. Called in the place of `record` or behind it."""
        ...

    def whole(self) -> bytes:
        """Returns the whole answer as JSON, in the place of `close`."""
        ...


# So many events of a whole answer are encoded at once: what is not sent is not kept.
_PART: Final = 1024


def feed_whole(encoder: StreamEncoder, events: Sequence[Event]) -> None:
    """Gives an encoder all events of an answer that is sent whole: it builds the object as it writes the stream, which
    saves a second fold."""
    for start in range(0, len(events), _PART):
        encoder.feed(events[start : start + _PART])


class StoredQuery(Protocol):
    """A request on a `stored` route."""

    def missing(self, found: Mapping[str, bytes | None]) -> Sequence[str]:
        """Returns the names of entries that are needed beside those found; none once there is an answer."""
        ...

    def encode(self, found: Mapping[str, bytes | None]) -> bytes:
        """Returns the answer as JSON. Raises InvalidRequest, with status 404 where nothing is stored."""
        ...

    def deletes(self, found: Mapping[str, bytes | None]) -> Sequence[str]:
        """Returns the names of the entries to delete before the answer is sent."""
        ...


@runtime_checkable
class StatefulDialect(Dialect, Protocol):
    """Extends a Dialect whose answers may be stored."""

    def missing_entries(self, document: Document) -> Sequence[str]:
        """Returns the names of the entries that a request refers to and that `document.stored` lacks. Entries may refer
        to further ones, so that it is asked again until nothing is missing. Raises InvalidRequest."""
        ...

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> StoringEncoder:
        """Returns the encoder of one answer."""
        ...

    def stored_query(self, route: Route, head: RequestHead, name: str) -> StoredQuery:
        """Returns the query of a request on a `stored` route. `name` is the parameter of its path. Raises
        InvalidRequest."""
        ...
