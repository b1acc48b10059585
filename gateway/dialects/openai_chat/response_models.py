"""Defines the responses of the dialect as msgspec types, for the published document.

The encoders write responses field by field, with a backend's unknown fields among them; unlisted fields are legal.
Clients may rely on the listed fields.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Violation
from gateway.core.events import Reason
from gateway.core.notices import Notice
from gateway.dialects.usage import UsageNote


class CalledFunction(Struct, frozen=True):
    """The call of a function; `arguments` is the text that the model wrote, usually a JSON object."""

    name: str
    arguments: str


class CalledCustom(Struct, frozen=True):
    """The call of a custom tool."""

    name: str
    input: str


class Call(Struct, frozen=True):
    """A tool call: `function` or `custom`, as `type` says."""

    id: str
    type: Literal["function", "custom"]
    function: CalledFunction | UnsetType = UNSET
    custom: CalledCustom | UnsetType = UNSET


class AnswerMessage(Struct, frozen=True):
    """The model's message."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[Call] | UnsetType = UNSET


class Choice(Struct, frozen=True):
    """The response's only choice, with the reason why it ended."""

    index: Literal[0]
    message: AnswerMessage
    finish_reason: Reason


class Usage(Struct, frozen=True):
    """Token counts; `dragoman.usage` says how reliable they are."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Diagnostics(Struct, frozen=True):
    """The gateway's notes about the response."""

    usage: UsageNote | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class ChatCompletion(Struct, frozen=True):
    """A whole response."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | UnsetType = UNSET
    dragoman: Diagnostics | UnsetType = UNSET


class CalledFunctionPiece(Struct, frozen=True):
    """The first piece holds the name; the `arguments` of all pieces concatenate to one text."""

    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET


class CalledCustomPiece(Struct, frozen=True):
    """The first piece holds the name; the `input` of all pieces concatenates to one text."""

    name: str | UnsetType = UNSET
    input: str | UnsetType = UNSET


class CallPiece(Struct, frozen=True):
    """A piece of the tool call with this index. The first one has its `id` and `type`."""

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function", "custom"] | UnsetType = UNSET
    function: CalledFunctionPiece | UnsetType = UNSET
    custom: CalledCustomPiece | UnsetType = UNSET


class Delta(Struct, frozen=True):
    """The next piece of the message."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[CallPiece] | UnsetType = UNSET


class ChunkChoice(Struct, frozen=True):
    """A piece of the response. Only the last one holds the finish reason."""

    index: Literal[0]
    delta: Delta
    finish_reason: Reason | None


class ChatCompletionChunk(Struct, frozen=True):
    """A piece of a streamed response. A last one without choices may hold `usage` and `dragoman`."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | UnsetType | None = UNSET
    dragoman: Diagnostics | UnsetType = UNSET


class Model(Struct, frozen=True, kw_only=True):
    """A model that clients may request. `created` is the gateway's own start."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["dragoman"] = "dragoman"


class Unlisted(Struct, frozen=True):
    """The reason why some available models are not in the list."""

    missing: str


class ModelList(Struct, frozen=True, kw_only=True):
    """The models that clients may request. `dragoman` is present when a backend's own models are not among them."""

    object: Literal["list"] = "list"
    data: list[Model]
    dragoman: Unlisted | UnsetType = UNSET


class ErrorObject(Struct, frozen=True):
    """The error. `code` is stable and meant for programs, `message` for people; `param` names the faulty field.

    `violations` are the broken rules of the history.
    """

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "upstream_error", "server_error"]
    param: str | None
    code: str | None
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class ErrorBody(Struct, frozen=True):
    """The body of every error response."""

    error: ErrorObject
