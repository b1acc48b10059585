"""Reads what chat and generate requests share: every field is honoured, reported by a notice, or refused by name."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from adapters.ollama.table import FIELDS, OPTIONS, OllamaOptions, RequestFields, limit_of
from gateway.core.conversation import Json, JsonObject, ReadableContent, Sampling
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.dialects.field_types import read_fields, whole_numbers

Fields = TypeVar("Fields", bound=RequestFields)


def read_request(fields: Mapping[str, Json], kind: type[Fields]) -> Fields:
    """Returns the fields as this type. Raises InvalidRequest for a wrong one, and Unsupported for a refused one."""
    options = fields.get("options")
    request = read_fields({**fields, "options": whole_numbers(options)} if isinstance(options, dict) else fields, kind)
    if not request.model.strip():
        raise InvalidRequest("model must not be empty.", param="model")
    FIELDS[kind].check(fields)
    return request


def unsent_fields(fields: JsonObject, kind: type[RequestFields]) -> tuple[Notice, ...]:
    """Returns a notice for each field and each option without an equivalent at any provider."""
    return tuple([_unsent(name) for name in _unsent_names(fields, kind)])


def _unsent_names(fields: JsonObject, kind: type[RequestFields]) -> Iterator[str]:
    yield from (name for name in FIELDS[kind].unsent(fields) if fields[name] is not None)
    options = fields.get("options")
    if isinstance(options, dict):
        yield from (f"options.{name}" for name in OPTIONS.unsent(options) if options[name] is not None)


def _unsent(name: str) -> Notice:
    return Notice("decode", "dropped", "FIELD_NOT_SENT", f"no backend has a field for {name[:80]!r}", level="debug")


def sampling(options: OllamaOptions) -> Sampling:
    """Returns the sampling parameters."""
    return Sampling(
        options.temperature,
        top_p=options.top_p,
        max_tokens=limit_of(options.num_predict),
        stop=tuple(options.stop or ()),
        seed=options.seed,
    )


def canonical_params(request: RequestFields) -> dict[str, Json]:
    """Returns the fields beside the turns under their canonical names. Raises InvalidRequest for unknown words."""
    options = request.options or OllamaOptions()
    return {**OPTIONS.read(options), **FIELDS[type(request)].read(request)}


def readable(request: RequestFields) -> frozenset[ReadableContent]:
    """Returns the parts that the answer may hold: no reasoning where the client says `think: false`."""
    return frozenset(("calls",)) if request.think is False else frozenset(("calls", "reasoning"))
