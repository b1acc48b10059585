"""Defines the input of the dialect kit: a dialect, and a client of it that writes requests and reads answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import ALL_CONTENT, Conversation, Json, ReadableContent, Text, ToolCall, Turn
from gateway.core.events import Reason
from gateway.dialect import AnswerHead, ClientRequest, Dialect, RequestHead
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
    - `statuses`: the dialect's own statuses for those of errors, where its clients read them otherwise.
    - `lacks`: what a request of the API cannot say, by the names of `gateway.testing.dialect_field_checks.EXAMPLES`.
    - `provider`: whose opaque state clients return with reasoning or calls; empty: they return none.
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
    statuses: Mapping[int, int] = {}
    lacks: frozenset[str] = frozenset()
    provider: str = ""

    def __str__(self) -> str:
        return self.dialect().name

    def target(self, conversation: Conversation) -> str:
        """Returns the path, and the query if any, to which a request with this conversation goes."""
        if self.write_target is not None:
            return self.write_target(conversation)
        return next(route.path for route in self.dialect().routes if route.kind == "generate")

    def decode(self, body: bytes, conversation: Conversation) -> ClientRequest:
        """Returns a request, written from this conversation, as the gateway decodes it. Raises InvalidRequest."""
        path, _, query = self.target(conversation).partition("?")
        return self.dialect().decode(read_document(body), RequestHead(path, query.encode()))

    def decode_saved(self, body: bytes) -> ClientRequest:
        """Returns a request that has no head as the gateway decodes it. Raises InvalidRequest."""
        return self.dialect().decode(read_document(body), RequestHead(""))


DialectCheck: TypeAlias = Callable[[DialectCase], None]

HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "a model/of any:name", lambda: 1_700_000_002)
GREETING: Final = Conversation(
    (Turn("user", (Text("Good morning."),)),), model="model", stream=True, include_usage=True
)


def greeting(case: DialectCase) -> ClientRequest:
    """Returns GREETING as the dialect reads it."""
    return case.decode(case.write(GREETING), GREETING)


def arguments_by_id(calls: Sequence[ToolCall]) -> dict[str, tuple[str, Json]]:
    """Returns the name and the arguments, as a value, of each call by its id."""
    return {call.id: (call.name, json.loads(call.arguments or "{}")) for call in calls}


def texts_of(value: Json) -> set[str]:
    """Every text in a JSON value."""
    match value:
        case str():
            return {value}
        case list():
            return {text for item in value for text in texts_of(item)}
        case dict():
            return {text for item in value.values() for text in texts_of(item)}
        case _:
            return set()
