"""Defines the input of the dialect kit: a dialect, and a client of it that writes requests and reads answers."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gateway.core.conversation import ALL_CONTENT, Conversation, ReadableContent, ToolCall
from gateway.core.events import Reason
from gateway.dialects.base import ClientRequest, Dialect, RequestHead
from gateway.dialects.document import read_document


class ClientAnswer(msgspec.Struct, frozen=True):
    """What a client reads in an answer, or in the part of one that has arrived.

    `finish` is the dialect's own word, and None as long as the answer is incomplete. `usage` are the tokens of the
    prompt and of the answer. `notices` are the rules of the notices. `error` is the message of a failure.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    usage: tuple[int, int] | None = None
    notices: tuple[str, ...] = ()
    error: str | None = None


class DialectCase(msgspec.Struct, frozen=True):
    """One dialect and its client.

    The client is written for the test, independent of the dialect, and strict: a reader raises AssertionError or
    ValueError for anything that a client of the dialect could not read.

    - `write`: a request with this conversation, the body of a `generate` route.
    - `read_stream`: the bytes of a streamed answer, which may end anywhere.
    - `read_whole`: the body of a whole answer.
    - `read_error`: the message in the body of an error.
    - `read_models`: the names in the body of a list of models.
    - `finishes`: the dialect's word for each finish reason.
    - `streams_by_default`: whether a request that does not say so gets a stream.
    - `reads`: what clients of the dialect read of an answer beside text.
    - `lists_models`: whether the dialect has a list of models of its own.
    - `write_target`: the path and the query to which a request goes, where the conversation decides; None: those of the
      first `generate` route.
    """

    dialect: Callable[[], Dialect]
    write: Callable[[Conversation], bytes]
    read_stream: Callable[[bytes], ClientAnswer]
    read_whole: Callable[[bytes], ClientAnswer]
    read_error: Callable[[bytes], str]
    read_models: Callable[[bytes], Sequence[str]]
    finishes: Mapping[Reason, str]
    streams_by_default: bool = False
    reads: frozenset[ReadableContent] = ALL_CONTENT
    lists_models: bool = True
    write_target: Callable[[Conversation], str] | None = None

    def __str__(self) -> str:
        return self.dialect().name

    def target(self, conversation: Conversation) -> str:
        """Return the path, and the query if any, to which a request with this conversation goes."""
        if self.write_target is not None:
            return self.write_target(conversation)
        return next(route.path for route in self.dialect().routes if route.kind == "generate")

    def decode(self, body: bytes, conversation: Conversation) -> ClientRequest:
        """Return a request, written from this conversation, as the gateway decodes it. Raises InvalidRequest."""
        path, _, query = self.target(conversation).partition("?")
        return self.dialect().decode(read_document(body), RequestHead(path, query.encode()))

    def decode_saved(self, body: bytes) -> ClientRequest:
        """Return a request that has no head as the gateway decodes it. Raises InvalidRequest."""
        return self.dialect().decode(read_document(body), RequestHead(""))
