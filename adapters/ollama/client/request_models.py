"""Defines the requests of the Ollama API as msgspec types; the messages of a chat stay untyped.

Source: Ollama, `api/types.go` (0.32). Unknown fields are legal. The published document is made from these types.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName, Whole


class OllamaFunction(msgspec.Struct, frozen=True):
    """A function that the model may call; `parameters` is a JSON Schema."""

    name: str
    description: str | None = None
    parameters: FreeObject | None = None


class OllamaTool(msgspec.Struct, frozen=True):
    """An entry of `tools`. Only the type `function` is known."""

    type: str = "function"
    function: OllamaFunction | None = None


class OllamaOptions(msgspec.Struct, frozen=True):
    """The `options` that have an equivalent at other providers. `num_predict` below 1 is no limit."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: Whole | None = None
    min_p: float | None = None
    seed: Whole | None = None
    num_predict: Whole | None = None
    stop: list[str] | None = None
    repeat_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None


class RequestFields(msgspec.Struct, frozen=True):
    """The fields that chat and generate requests share. None: the client did not set the field."""

    model: str
    stream: bool | None = None
    format: str | FreeObject | None = None
    think: bool | str | None = None
    options: OllamaOptions | None = None
    keep_alive: float | str | None = None
    truncate: bool | None = None
    shift: bool | None = None
    logprobs: bool | None = None
    top_logprobs: Whole | None = None
    debug_render_only: bool | None = msgspec.field(name="_debug_render_only", default=None)


class ChatFields(RequestFields, frozen=True):
    """A chat request without its messages."""

    tools: list[OllamaTool] | None = None


class GenerateFields(RequestFields, frozen=True):
    """A generate request."""

    prompt: str | None = None
    system: str | None = None
    images: list[str] | None = None
    suffix: str | None = None
    template: str | None = None
    raw: bool | None = None
    context: list[int] | None = None
    width: Whole | None = None
    height: Whole | None = None
    steps: Whole | None = None


_Think: TypeAlias = bool | Literal["low", "medium", "high", "max"] | None
_MESSAGE: Final = {
    "items": {
        "description": "A message: an object with `role`, `content`, `images`, `thinking`, `tool_calls`, `tool_name`, "
        "`tool_call_id`. A message of any other shape is repaired with a notice, or refused if `repair` is `strict`."
    }
}


class OllamaChatRequest(ChatFields, frozen=True, kw_only=True):
    """A chat request. Fields that are not listed are legal. Without messages it only asks whether there is a model.

    For the published document only. It also holds the fields that the reader checks with error texts of its own.
    """

    model: ModelName
    messages: Annotated[list[Any], msgspec.Meta(extra_json_schema=_MESSAGE)] | None = None
    format: Literal["", "json"] | FreeObject | None = None
    think: _Think = None
    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None


class OllamaGenerateRequest(RequestFields, frozen=True, kw_only=True):
    """A generate request. Fields that are not listed are legal. Without a prompt it only asks whether there is a model.

    For the published document only. It leaves out the fields that only a raw model could honour.
    """

    model: ModelName
    prompt: str | None = None
    system: str | None = None
    images: list[str] | None = None
    format: Literal["", "json"] | FreeObject | None = None
    think: _Think = None
    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None


class OllamaShowRequest(msgspec.Struct, frozen=True):
    """A request for one model; `name` is the older name of `model`. One of them is required.

    For the published document only.
    """

    model: str | None = None
    name: str | None = None


class OllamaExplainRequest(OllamaChatRequest, frozen=True, kw_only=True):
    """A chat request of Ollama; without a model it is for the first one. `profile` and `settings` (policy keys)
    override those of the model."""

    model: OptionalModelName = msgspec.UNSET
    profile: str | None = None
    settings: FreeObject | None = None
