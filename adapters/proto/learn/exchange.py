"""Defines a recorded exchange: a client's request, the bytes to and from the backend, and what the client got."""

from collections.abc import Mapping

import msgspec

from gateway.core.conversation import Conversation, ToolCall
from gateway.core.events import Reason, UsageReport
from gateway.core.policy import Policy


class KnownError(msgspec.Struct, frozen=True):
    """The error that a client got. `status` is 0, and a text empty, where it is not known."""

    message: str = ""
    status: int = 0
    code: str = ""


class KnownAnswer(msgspec.Struct, frozen=True):
    """The answer that a client got. Ids of calls that the gateway made itself are no part of the backend's response, as
    is a name of the model that is the client's."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Reason | None = None
    usage: UsageReport | None = None
    id: str | None = None
    model: str | None = None
    error: KnownError | None = None


class RecordedExchange(msgspec.Struct, frozen=True):
    """One request and its response. `conversation` is the client's request with the backend's name of the model.

    `body` is that of the request to the backend, `answer` that of its response, as HTTP carries them. `trailers` are
    those of HTTP/2. `known` is what the client got; None: it is not known. `planted` is a text
    that the answer must have, and `asked_end` the end that the request asks for; empty or None: none is known.
    """

    name: str
    conversation: Conversation
    policy: Policy
    body: bytes
    answer: bytes
    trailers: Mapping[str, str] = {}
    known: KnownAnswer | None = None
    planted: str = ""
    asked_end: Reason | None = None
