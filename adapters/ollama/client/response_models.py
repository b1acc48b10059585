"""Defines the answers of the dialect as msgspec types, for the published document.

The encoders write answers field by field; unlisted fields are legal. Source: Ollama, `api/types.go` (0.32).
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Violation
from gateway.core.notices import Notice
from gateway.dialects.dragoman_field import Diagnostics, Unlisted


class OllamaCalledFunction(Struct, frozen=True):
    """The called function. `index` is the position among the calls of the answer."""

    index: int
    name: str
    arguments: dict[str, Any]


class OllamaCall(Struct, frozen=True):
    """A tool call, whole."""

    id: str
    function: OllamaCalledFunction


class OllamaAnswerMessage(Struct, frozen=True):
    """The model's message, or a piece of it: the texts of all pieces concatenate."""

    role: Literal["assistant"]
    content: str
    thinking: str | UnsetType = UNSET
    tool_calls: list[OllamaCall] | UnsetType = UNSET


class OllamaAnswer(Struct, frozen=True, kw_only=True):
    """The fields of every answer: a whole one or the last line with `done: true` also why it ended, its times
    in nanoseconds, and its tokens."""

    model: str
    created_at: str
    done: bool
    done_reason: Literal["stop", "length", "load", "unload"] | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    load_duration: int | UnsetType = UNSET
    prompt_eval_count: int | UnsetType = UNSET
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    eval_duration: int | UnsetType = UNSET
    dragoman: Diagnostics | UnsetType = UNSET


class OllamaChatAnswer(OllamaAnswer, frozen=True, kw_only=True):
    """An answer in a chat, whole or one line of a stream."""

    message: OllamaAnswerMessage


class OllamaGenerateAnswer(OllamaAnswer, frozen=True, kw_only=True):
    """An answer to a prompt, whole or one line of a stream."""

    response: str
    thinking: str | UnsetType = UNSET
    tool_calls: list[OllamaCall] | UnsetType = UNSET


class OllamaModelDetails(Struct, frozen=True):
    """Facts about a model's file, of which the gateway knows at most the context length in tokens."""

    parent_model: str = ""
    format: str = ""
    family: str = ""
    families: list[str] = []
    parameter_size: str = ""
    quantization_level: str = ""
    context_length: int | UnsetType = UNSET


class OllamaListedModel(Struct, frozen=True):
    """A model that clients may request. `modified_at` is the gateway's own start; `digest` is that of the name."""

    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: OllamaModelDetails
    capabilities: list[str]


class OllamaModelList(Struct, frozen=True):
    """The models that clients may request. `dragoman` is present when a backend's own models are not among them."""

    models: list[OllamaListedModel]
    dragoman: Unlisted | UnsetType = UNSET


class OllamaModel(Struct, frozen=True):
    """One model. `model_info` holds its name and, if it is known, its context length in tokens; `parameters` its sizes,
    as the lines of a Modelfile."""

    details: OllamaModelDetails
    model_info: dict[str, str | int]
    capabilities: list[str]
    modified_at: str
    template: str = ""
    parameters: str = ""
    license: str = ""
    modelfile: str = ""


class OllamaPulled(Struct, frozen=True):
    """The end of the download of a model: there is none, since a backend has the model."""

    status: str


class OllamaVersion(Struct, frozen=True):
    """The version of Ollama whose API the gateway serves."""

    version: str


class OllamaRunningModels(Struct, frozen=True):
    """The models that the gateway holds in memory: none."""

    models: list[OllamaListedModel]


class OllamaError(Struct, frozen=True):
    """An error, as a body or as the last line of a stream. `error` is for people, the rest for programs: `param` names
    the faulty field, `violations` are the broken rules of the history."""

    error: str
    code: str | None
    param: str | None
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET
