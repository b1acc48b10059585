"""Defines the whole requests of the API as msgspec types, for the published document."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from adapters.ollama.table import ChatFields, RequestFields
from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName

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
