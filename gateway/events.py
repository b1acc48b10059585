"""What comes back: the closed vocabulary of a response stream, whatever wire it was read from."""

from typing import Literal, TypeAlias, final

import msgspec

from gateway.notices import Notice
from gateway.types import EMPTY, JsonObject

Reason = Literal["stop", "length", "tool_calls", "content_filter"]
Scope = Literal["response", "choice", "delta"]


@final
class ResponseStart(msgspec.Struct, frozen=True):
    """The backend has begun to answer. `id` and `model` are the backend's own, when it says them."""

    id: str | None = None
    model: str | None = None


@final
class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """A non-empty piece of the answer."""

    text: str


@final
class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    """A non-empty piece of the reasoning."""

    text: str


@final
class ToolCallStart(msgspec.Struct, frozen=True):
    """A tool call opens. `index` only keys this call's later events; dialects number calls anew, densely.

    `enveloped` says that the wire itself wrapped the real call (a fact of the backend's schema, not of the name).
    `extra` keeps unknown fields of the call.
    """

    index: int
    id: str
    name: str
    enveloped: bool = False
    extra: JsonObject = EMPTY


@final
class ToolCallDelta(msgspec.Struct, frozen=True, gc=False):
    """A non-empty piece of the call's arguments (JSON text; the pieces concatenate)."""

    index: int
    arguments: str


@final
class ToolCallEnd(msgspec.Struct, frozen=True):
    """The call is complete."""

    index: int


@final
class UsageReport(msgspec.Struct, frozen=True):
    """Tokens as the backend counted them. None: it did not say (nothing is invented).

    `extra` keeps unknown fields (`prompt_tokens_details`, ...). `estimated` marks figures nobody counted.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    estimated: bool = False
    extra: JsonObject = EMPTY


@final
class Extension(msgspec.Struct, frozen=True):
    """Fields of a backend's chunk that we do not know, for a client of the same dialect.

    `scope` says which object of the chunk carried them. They belong to the next event of the same list.
    """

    scope: Scope
    fields: JsonObject


@final
class Finish(msgspec.Struct, frozen=True):
    """The answer is complete: a reason from the closed set and the backend's own word for it."""

    reason: Reason
    raw: str | None = None


Event: TypeAlias = (
    ResponseStart
    | TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | UsageReport
    | Extension
    | Finish
    | Notice
)
