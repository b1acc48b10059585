"""Reads `generationConfig`: fields with a canonical name, and those that only a backend of the same API has."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from adapters.gemini.client.request_models import LEVELS, UNSPECIFIED, GenerationConfig, ThinkingConfig
from adapters.gemini.client.schema import json_schema
from gateway.core.conversation import Json, JsonObject, Sampling
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice

# Sent to any backend under the canonical name, with the same value.
CANONICAL: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "candidate_count": "n",
}
# Only a backend of the same API has them; an answer without their effect is still an answer to the request.
REPORTED: Final = frozenset(
    [
        "speechConfig",
        "imageConfig",
        "mediaResolution",
        "enableEnhancedCivicAnswers",
        "enableAffectiveDialog",
        "audioTimestamp",
        "audioTranscriptionConfig",
        "translationConfig",
        "routingConfig",
        "modelSelectionConfig",
        "modelArmorConfig",
        "generationOutputConfig",
    ]
)
# Without these the answer would lack what they ask for, and only a backend of the same API has them.
OWN: Final[dict[str, Callable[[Any], bool]]] = {
    "responseLogprobs": bool,
    "logprobs": bool,
    "responseFormat": lambda value: value is not None,
}
_JSON_TYPE: Final = "application/json"
_TEXT_TYPE: Final = "text/plain"
# Source: Gemini API, OpenAI compatibility, "Thinking": the budgets that the efforts stand for.
_LOW_BUDGET: Final = 1024
_MEDIUM_BUDGET: Final = 8192


class Generation(NamedTuple):
    """What a request says of its answer: canonical fields, those of them with a place of their own, notices, and the
    paths of the fields that only a backend of the same API can honour."""

    params: dict[str, Json]
    sampling: Sampling
    notices: tuple[Notice, ...]
    own: tuple[str, ...]


def read_generation(config: GenerationConfig, source: JsonObject, place: str) -> Generation:
    """Returns the fields of a config, which stands at `place`; `source` is the config as the client wrote it. Raises
    InvalidRequest."""
    own = [f"{place}.{name}" for name, asks in OWN.items() if asks(source.get(name))]
    if (config.response_mime_type or _TEXT_TYPE) not in (_JSON_TYPE, _TEXT_TYPE):
        own.append(f"{place}.responseMimeType")
    thinking = config.thinking_config or ThinkingConfig()
    if thinking.thinking_level is not None and thinking.thinking_level not in LEVELS:
        own.append(f"{place}.thinkingConfig.thinkingLevel")
    params: dict[str, Json] = {
        canonical: value for name, canonical in CANONICAL.items() if (value := getattr(config, name)) is not None
    }
    modalities = [modality.lower() for modality in config.response_modalities or ()]
    if modalities not in ([], ["text"]):
        params["modalities"] = [*modalities]
    if (form := _response_format(config, place)) is not None:
        params["response_format"] = form
    notices = [unsent(f"{place}.{name}") for name in source if name in REPORTED or name not in _KNOWN]
    notices += _read_thinking(thinking, params, f"{place}.thinkingConfig")
    sampling = Sampling(
        config.temperature, config.top_p, config.max_output_tokens, tuple(config.stop_sequences or ()), config.seed
    )
    return Generation(params, sampling, tuple(notices), tuple(own))


_KNOWN: Final = frozenset(GenerationConfig.__struct_encode_fields__)


def unsent(param: str) -> Notice:
    """Returns the notice of a field that only a backend of the same API has."""
    return Notice("decode", "dropped", "FIELD_NOT_SENT", f"no other API has a field for {param[:80]!r}", level="debug")


def _response_format(config: GenerationConfig, place: str) -> Json:
    """Returns the canonical form of the answer's format; None for plain text."""
    kind = config.response_mime_type or _TEXT_TYPE
    written, plain = config.response_schema, config.response_json_schema
    if written is not None and plain is not None:
        param = f"{place}.responseJsonSchema"
        raise InvalidRequest(f"{param} must be absent beside responseSchema.", param=param)
    if kind == _TEXT_TYPE:
        if written is not None or plain is not None:
            param = f"{place}.responseMimeType"
            raise InvalidRequest(f"{param} must be {_JSON_TYPE} beside a schema.", param=param)
        return None
    schema = plain if written is None else json_schema(written)
    if kind != _JSON_TYPE:
        return None
    if schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"schema": schema}}


def _read_thinking(config: ThinkingConfig, params: dict[str, Json], place: str) -> Iterator[Notice]:
    """Adds the effort to the params. A budget in tokens has no canonical form: its effort is the nearest."""
    level, budget = config.thinking_level, config.thinking_budget
    effort = None if level is None or level.endswith(UNSPECIFIED) else level.lower()
    if effort is None and budget is not None and budget >= 0:
        effort = _effort(budget)
        detail = f"{place}.thinkingBudget is read as the reasoning effort {effort}"
        yield Notice("decode", "changed", "EFFORT_CHANGED", detail, level="debug")
    if effort is not None:
        params["reasoning_effort"] = effort


def _effort(budget: int) -> str:
    if budget == 0:
        return "none"
    return "low" if budget <= _LOW_BUDGET else "medium" if budget <= _MEDIUM_BUDGET else "high"
