"""Defines the closed set of events of a response stream, independent of the backend's wire format."""

from typing import Final, Literal, TypeAlias, final

import msgspec

from gateway.core.conversation import EMPTY, JsonObject
from gateway.core.notices import Notice

Reason = Literal["stop", "length", "tool_calls", "content_filter"]
ReasoningField = Literal["reasoning_content", "reasoning"]
Scope = Literal["response", "choice", "delta", "event"]


@final
class ResponseStart(msgspec.Struct, frozen=True):
    """The response of the backend has begun. `id` and `model` are the backend's own, if it sends them."""

    id: str | None = None
    model: str | None = None


@final
class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """A non-empty piece of the response text."""

    text: str


@final
class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    """A non-empty piece of the reasoning. `field` is the name under which a chat completions backend sent it."""

    text: str
    field: ReasoningField = "reasoning_content"


@final
class ReasoningEnd(msgspec.Struct, frozen=True):
    """End of a piece of reasoning that has state. A piece without state ends with the next event of another kind.

    `extra` is the state that must return to its provider with the reasoning, as in `Reasoning.extra`.
    """

    extra: JsonObject


@final
class ToolCallStart(msgspec.Struct, frozen=True):
    """Start of a tool call. `index` only keys this call's later events; dialects renumber the calls densely.

    `wrapped` says that the wire itself wrapped the real call (a fact of the backend's schema, not of the name). `extra`
    keeps unknown fields of the call.
    """

    index: int
    id: str
    name: str
    wrapped: bool = False
    extra: JsonObject = EMPTY


@final
class ToolCallDelta(msgspec.Struct, frozen=True, gc=False):
    """A non-empty piece of the call's arguments (JSON text; the pieces concatenate)."""

    index: int
    arguments: str


@final
class ToolCallEnd(msgspec.Struct, frozen=True):
    """End of a tool call. `extra` keeps unknown fields of the call that its start did not have."""

    index: int
    extra: JsonObject = EMPTY


# Above it clients do not agree on a number (RFC 7493, section 2.2), and those with typed integers refuse the answer.
MOST_TOKENS: Final = 2**53 - 1


@final
class UsageReport(msgspec.Struct, frozen=True):
    """Token counts of the backend, up to `MOST_TOKENS`. None: the backend did not report the count (nothing is
    invented).

    `extra` keeps unknown fields (`prompt_tokens_details`, ...). `estimated` marks counts that no backend reported.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    estimated: bool = False
    extra: JsonObject = EMPTY


@final
class PassthroughFields(msgspec.Struct, frozen=True):
    """Unknown fields of a backend's chunk, for a client of the same dialect.

    `scope` names the object of the chunk that carried them. They belong to the next event of the same list. Those of
    the scope `event` are a whole event of the backend's stream, which no other event expresses or which others express
    in part; `frames`: it says where content begins or ends that other events hold. `call` is the name of the function
    that they begin to call, in a form which no other event expresses. A decoder reports them only to a conversation of
    its own dialect (`Capabilities.passthrough`).
    """

    scope: Scope
    fields: JsonObject
    frames: bool = False
    call: str = ""


# The beginning of the raw reason where the gateway ended an answer at a stop sequence, which follows it.
STOPPED_BY: Final = "stop_sequence:"
# The raw reason where the gateway ended an answer that its client steered.
STEERED: Final = "response.steer"


@final
class Finish(msgspec.Struct, frozen=True):
    """End of a complete response: a reason from the closed set and the backend's own word for it.

    `stop_sequence` is the one of the client's stop sequences that ended the response; None: none did, or the backend
    does not say which.
    """

    reason: Reason
    raw: str | None = None
    stop_sequence: str | None = None


Event: TypeAlias = (
    ResponseStart
    | TextDelta
    | ReasoningDelta
    | ReasoningEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | UsageReport
    | PassthroughFields
    | Finish
    | Notice
)
