"""Reads `generationConfig`: fields with a canonical name, and those that only a backend of the same API has."""

from typing import Final, NamedTuple

from adapters.gemini.client.schema import json_schema
from adapters.gemini.table import CONFIG, LEVELS, GenerationConfig, ThinkingConfig
from adapters.gemini.thinking import read_thinking
from gateway.core.conversation import Json, JsonObject, Sampling
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice

_JSON_TYPE: Final = "application/json"
_TEXT_TYPE: Final = "text/plain"


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
    own = [f"{place}.{name}" for name in CONFIG.asked(source)]
    if (config.response_mime_type or _TEXT_TYPE) not in (_JSON_TYPE, _TEXT_TYPE):
        own.append(f"{place}.responseMimeType")
    thinking = config.thinking_config or ThinkingConfig()
    if thinking.thinking_level is not None and thinking.thinking_level not in LEVELS:
        own.append(f"{place}.thinkingConfig.thinkingLevel")
    params = CONFIG.read(config)
    if (form := _response_format(config, place)) is not None:
        params["response_format"] = form
    notices = [unsent(f"{place}.{name}") for name in CONFIG.unsent(source)]
    notices += read_thinking(thinking, params, f"{place}.thinkingConfig")
    sampling = Sampling(
        config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_output_tokens,
        stop=tuple(config.stop_sequences or ()),
        seed=config.seed,
    )
    return Generation(params, sampling, tuple(notices), tuple(own))


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
