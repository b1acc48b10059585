"""Reads what chat and generate requests share: every field is honoured, reported by a notice, or refused by name."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from adapters.ollama.client.request_models import OllamaOptions, RequestFields
from gateway.core.conversation import Json, JsonObject, ReadableContent, Sampling
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.notices import Notice
from gateway.dialects.field_types import read_fields

Fields = TypeVar("Fields", bound=RequestFields)

THINK_LEVELS: Final = ("low", "medium", "high", "max")
# What `think: true` asks for.
THINK_DEFAULT: Final = "medium"
# Fields that change the meaning of the answer, and why it cannot have them.
REFUSED: Final[Mapping[str, str]] = {
    "logprobs": "answers have no log probabilities",
    "top_logprobs": "answers have no log probabilities",
    "_debug_render_only": "only the backend knows its prompt",
    "suffix": "it needs a model that fills in text",
    "template": "only the backend knows its prompt",
    "raw": "only the backend knows its prompt",
    "context": "the gateway keeps no state; send the conversation to /api/chat",
    "width": "answers are text",
    "height": "answers are text",
    "steps": "answers are text",
}
# Fields about the server's memory, which the gateway does not manage.
REPORTED: Final = frozenset({"keep_alive", "truncate", "shift"})

_OPTIONS: Final[frozenset[str]] = frozenset(OllamaOptions.__struct_fields__)
_WHOLE: Final = frozenset({"top_k", "seed", "num_predict"})


def read_request(fields: Mapping[str, Json], kind: type[Fields]) -> Fields:
    """Returns the fields as this type. Raises InvalidRequest for a wrong one, and Unsupported for a refused one."""
    request = read_fields({**fields, "options": _whole_numbers(fields.get("options"))}, kind)
    if not request.model.strip():
        raise InvalidRequest("model must not be empty.", param="model")
    for name in kind.__struct_encode_fields__:
        if name in REFUSED and fields.get(name):
            reason = REFUSED[name]
            raise Unsupported(f"{name} is not supported: {reason}.", param=name)
    return request


def _whole_numbers(options: Json) -> Json:
    """Many clients have a single number type, and Ollama reads 100.0 as a whole number."""
    if not isinstance(options, dict):
        return options
    return {
        name: int(value) if name in _WHOLE and isinstance(value, float) and value.is_integer() else value
        for name, value in options.items()
    }


def unsent_fields(fields: JsonObject, kind: type[RequestFields]) -> tuple[Notice, ...]:
    """Returns a notice for each field and each option without an equivalent at any provider."""
    return tuple([_unsent(name) for name in _unsent_names(fields, kind)])


def _unsent_names(fields: JsonObject, kind: type[RequestFields]) -> Iterator[str]:
    known = frozenset(kind.__struct_encode_fields__) - REPORTED
    yield from (name for name, value in fields.items() if name not in known and value is not None)
    options = fields.get("options")
    if isinstance(options, dict):
        yield from (f"options.{name}" for name, value in options.items() if name not in _OPTIONS and value is not None)


def _unsent(name: str) -> Notice:
    return Notice("decode", "dropped", "FIELD_NOT_SENT", f"no backend has a field for {name[:80]!r}", level="debug")


def sampling(options: OllamaOptions) -> Sampling:
    """Returns the sampling parameters."""
    return Sampling(
        options.temperature, options.top_p, _limit(options.num_predict), tuple(options.stop or ()), options.seed
    )


def canonical_params(request: RequestFields) -> dict[str, Json]:
    """Returns the fields beside the turns under their canonical names. Raises InvalidRequest for unknown words."""
    options = request.options or OllamaOptions()
    params: dict[str, Json] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "min_p": options.min_p,
        "seed": options.seed,
        "max_tokens": _limit(options.num_predict),
        "stop": [*options.stop] if options.stop else None,
        "repetition_penalty": options.repeat_penalty,
        "frequency_penalty": options.frequency_penalty,
        "presence_penalty": options.presence_penalty,
        "response_format": _response_format(request.format),
        "reasoning_effort": _effort(request.think),
    }
    return {name: value for name, value in params.items() if value is not None}


def readable(request: RequestFields) -> frozenset[ReadableContent]:
    """Returns what the answer may hold: no reasoning where the client says `think: false`."""
    return frozenset(("calls",)) if request.think is False else frozenset(("calls", "reasoning"))


def _limit(num_predict: int | None) -> int | None:
    return num_predict if num_predict is not None and num_predict > 0 else None


def _response_format(form: str | Mapping[str, Json] | None) -> Json:
    if not form:
        return None
    if isinstance(form, str):
        if form != "json":
            raise InvalidRequest(f'format must be "json" or a JSON Schema; it is {form[:40]!r}.', param="format")
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"schema": dict(form)}}


def _effort(think: bool | str | None) -> str | None:
    if not isinstance(think, str):
        return THINK_DEFAULT if think else None
    if think not in THINK_LEVELS:
        words = ", ".join(THINK_LEVELS)
        raise InvalidRequest(f"think must be true, false or one of {words}; it is {think[:40]!r}.", param="think")
    return think
