"""Defines the responses of the dialect as msgspec types, for the published document.

The encoders write responses field by field, with a backend's unknown fields among them; unlisted fields are legal.
Clients may rely on the listed fields.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from adapters.openai.usage import Usage
from gateway.core.events import Reason
from gateway.dialects.dragoman_field import Diagnostics


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
