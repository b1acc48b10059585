"""Reads a backend's list of models: their names, and what it says of them at the places of its wire."""

from collections.abc import Iterable
from typing import Final, TypeGuard

import msgspec

from gateway.adapter import BackendModel
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import BackendProtocolError
from gateway.core.model_facts import EFFORT_WORDS, Effort, ModelFacts
from gateway.framing.json_text import NotJson, decode_json

# Clients cut their histories by such a number: one above this is no number of tokens.
_MOST_TOKENS: Final = 10**9


class FactPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Where an entry of the list says what the model is like: paths of fields, of which the first with a value counts.

    A path ends in the name of a field, or in `[]` and the word that a list must have for the fact to be true.
    `context_length` and `max_output` are numbers of tokens, `display_name` is a text, the others are true or false.
    `efforts` is the path of an object with a field for each effort, which is true or has a true field `supported`.
    """

    display_name: tuple[str, ...] = ()
    context_length: tuple[str, ...] = ()
    max_output: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    efforts: str = ""


NO_PLACES: Final = FactPlaces()
# Lists in the form of OpenAI's, which itself says nothing of a model. Sources: OpenRouter, "Models API Standard"
# (`context_length`, `architecture`, `supported_parameters`, `top_provider`); vLLM, `ModelCard` (`max_model_len`); Groq,
# "Models" (`context_window`, `max_completion_tokens`); Mistral, "List Models" (`max_context_length`, `capabilities`);
# Fireworks, "List models" (`supports_*`); llama.cpp, `/v1/models` (`meta.n_ctx`; not what is served is `n_ctx_train`).
OPENAI_PLACES: Final = FactPlaces(
    context_length=(
        "top_provider.context_length",
        "context_length",
        "max_model_len",
        "context_window",
        "max_context_length",
        "meta.n_ctx",
    ),
    max_output=("top_provider.max_completion_tokens", "max_completion_tokens"),
    display_name=("name",),
    tools=("supported_parameters[]tools", "capabilities.function_calling", "supports_tools"),
    images=("architecture.input_modalities[]image", "capabilities.vision", "supports_image_input"),
    files=("architecture.input_modalities[]file",),
)


def models_in_list(body: bytes, key: str, name: str, places: FactPlaces = NO_PLACES) -> tuple[BackendModel, ...]:
    """Returns the models of every object in the list at `key` that has a text at `name`. A value of another kind than
    its place has is not known.

    Raises BackendProtocolError when there is no such list, or no name in it though it is not empty.
    """
    try:
        document = decode_json(body)
    except NotJson as error:
        raise _no_list() from error
    listed = document.get(key) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise _no_list()
    entries = [(entry, entry.get(name)) for entry in listed if isinstance(entry, dict)]
    found = tuple([_model(entry, found, places) for entry, found in entries if isinstance(found, str)])
    if listed and not found:
        raise _no_list()
    return found


def _model(entry: JsonObject, name: str, places: FactPlaces) -> BackendModel:
    if places is NO_PLACES:
        return BackendModel(name)
    title = next((text for text in _values(entry, places.display_name) if isinstance(text, str) and text), None)
    facts = ModelFacts(
        display_name=None if title == name else title,
        max_output=_tokens(entry, places.max_output),
        tools=_flag(entry, places.tools),
        images=_flag(entry, places.images),
        files=_flag(entry, places.files),
        efforts=_efforts(_at(entry, places.efforts)) if places.efforts else None,
    )
    return BackendModel(name, _tokens(entry, places.context_length), facts)


def _values(entry: JsonObject, paths: Iterable[str]) -> Iterable[Json]:
    return (_at(entry, path) for path in paths)


def _at(entry: JsonObject, path: str) -> Json:
    """Returns the value at a path, or None. Of a path with a word: whether the list there has it."""
    path, is_list, word = path.partition("[]")
    value: Json = dict(entry)
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if not is_list:
        return value
    return word in value if isinstance(value, list) else None


def _tokens(entry: JsonObject, paths: Iterable[str]) -> int | None:
    return next((value for value in _values(entry, paths) if is_tokens(value)), None)


def is_tokens(value: Json) -> TypeGuard[int]:
    """Returns whether a value is a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS


def _flag(entry: JsonObject, paths: Iterable[str]) -> bool | None:
    found = (value.get("supported") if isinstance(value, dict) else value for value in _values(entry, paths))
    return next((value for value in found if isinstance(value, bool)), None)


def _efforts(levels: Json) -> tuple[Effort, ...] | None:
    if not isinstance(levels, dict):
        return None
    return tuple([word for word in EFFORT_WORDS if _flag(levels, (word,))])


def _no_list() -> BackendProtocolError:
    return BackendProtocolError("The backend's list of models cannot be read.", code="upstream_invalid_response")
