"""The answers of the dialect as msgspec types, for the published document: what clients may rely on.

Answers are written field by field, and a backend's unknown fields among them; fields that are not listed are legal.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.dialects.openai_chat.usage import Remark
from gateway.events import Reason
from gateway.notices import Notice
from gateway.types import Violation


class CalledFunction(Struct, frozen=True):
    """The call of a function; `arguments` is the text that the model wrote, as a rule a JSON object."""

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
    """What the model answered."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[Call] | UnsetType = UNSET


class Choice(Struct, frozen=True):
    """The answer, and why it ended."""

    index: Literal[0]
    message: AnswerMessage
    finish_reason: Reason


class Usage(Struct, frozen=True):
    """Token counts; how far to trust them says `dragoman.usage`."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Remarks(Struct, frozen=True):
    """What the gateway has to say about the answer."""

    usage: Remark | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class ChatCompletion(Struct, frozen=True):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | UnsetType = UNSET
    dragoman: Remarks | UnsetType = UNSET


class CalledFunctionPiece(Struct, frozen=True):
    """The name comes in the first piece; the `arguments` of all pieces are one text."""

    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET


class CalledCustomPiece(Struct, frozen=True):
    """The name comes in the first piece; the `input` of all pieces is one text."""

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
    """What comes next."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[CallPiece] | UnsetType = UNSET


class ChunkChoice(Struct, frozen=True):
    """A piece of the answer. Only the last one says why it ended."""

    index: Literal[0]
    delta: Delta
    finish_reason: Reason | None


class ChatCompletionChunk(Struct, frozen=True):
    """A piece of a streamed answer. A last one without choices may bring `usage` and `dragoman`."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | UnsetType | None = UNSET
    dragoman: Remarks | UnsetType = UNSET


class Model(Struct, frozen=True, kw_only=True):
    """A model that may be asked for. `created` is the gateway's own start."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["dragoman"] = "dragoman"


class ModelList(Struct, frozen=True, kw_only=True):
    """The models that may be asked for."""

    object: Literal["list"] = "list"
    data: list[Model]


class ErrorObject(Struct, frozen=True):
    """What is wrong. `code` is stable and meant for programs, `message` for people; `param` names the culprit.
    `violations` are the broken rules of the history."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "upstream_error", "server_error"]
    param: str | None
    code: str | None
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class ErrorBody(Struct, frozen=True):
    """Every answer that is no success."""

    error: ErrorObject
