"""Decodes a request into a Conversation, and what its answer repeats.

The fields around the input are typed strictly: a wrong field is a 400 that names it. The steps of the input are not:
their faults are repaired and listed in `faults`, so that one faulty step does not make a long history unusable.
"""

from collections.abc import Iterator
from typing import Final

from adapters.gemini import PROVIDER
from adapters.gemini.table import TIERS
from adapters.gemini_interactions import DIALECT
from adapters.gemini_interactions.client.own_steps import own_steps
from adapters.gemini_interactions.client.paths import PATHS
from adapters.gemini_interactions.client.response_format import read_response_format
from adapters.gemini_interactions.client.steps import read_steps
from adapters.gemini_interactions.client.stored import read_history
from adapters.gemini_interactions.client.tools import read_tools
from adapters.gemini_interactions.table import (
    CONFIG,
    FIELDS,
    INPUT,
    LEVELS,
    PREVIOUS,
    SUMMARIES,
    InteractionConfig,
    RequestFields,
)
from gateway.core.conversation import (
    ALL_CONTENT,
    Conversation,
    Json,
    JsonObject,
    ReadableContent,
    Sampling,
    Source,
    Text,
    Turn,
)
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.rules import violation, violation_error
from gateway.core.state_rule import HeldState
from gateway.dialect import ClientRequest
from gateway.dialects.document import Document
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field, read_fields, whole_numbers

_PREFIX: Final = "models/"
_CONFIG: Final = "generation_config"
_HELD: Final = HeldState(frozenset({PROVIDER}), frozenset({PROVIDER}))
# The API gives no summaries of thoughts unless the client asks for them, but their signatures.
_WITHOUT_THOUGHTS: Final[frozenset[ReadableContent]] = frozenset(("calls", "state"))


def decode_document(document: Document) -> ClientRequest:
    """Decodes the body of a request, with what is stored of the interactions that it refers to. Raises InvalidRequest
    that names the parameter, and nothing else. Fault: TEXT_UNICODE."""
    faults = Faults(paths=PATHS)
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, INPUT)
    fields = {**document.fields}
    if isinstance(written := fields.get(_CONFIG), dict):
        fields[_CONFIG] = whole_numbers(written)
    FIELDS.check(fields)
    request = read_fields(fields, RequestFields)
    model = _model(request)
    if fields.get(INPUT) is None:
        raise missing_field(INPUT)
    own = own_steps(fields.pop(INPUT))
    if not own:
        raise violation_error([violation("MESSAGES_EMPTY", -1, param=INPUT, paths=PATHS)], PATHS)
    history = read_history(document)
    faults.earlier = len(history.items)
    config = request.generation_config or InteractionConfig()
    place = f"{_CONFIG}.tool_choice"
    offered = read_tools(request.tools or (), config.tool_choice, faults, place)
    form = read_response_format(request)
    notices = [*_unsent(fields), *offered.notices]
    turns = read_steps(history.items, own, faults, notices)
    if request.system_instruction:
        turns = (Turn("system", (Text(request.system_instruction),)), *turns)
    own_fields = [*_own_words(config), *form.own, *([place] if offered.own else [])]
    params = {**CONFIG.read(config), **FIELDS.read(request), **form.params}
    conversation = Conversation(
        turns,
        offered.functions,
        offered.choice,
        model=model,
        sampling=_sampling(config),
        stream=request.stream is True,
        # The answer has token counts in any case.
        include_usage=True,
        faults=tuple(faults.found),
        params=params,
        dialect=DIALECT,
        other_tools=offered.others,
        paths=PATHS,
        notices=tuple(notices),
        source=Source(DIALECT, fields),
        object_arguments=True,
        own_fields=tuple(own_fields),
        holds=_HELD,
        reads=ALL_CONTENT if config.thinking_summaries == "auto" else _WITHOUT_THOUGHTS,
    )
    echo: dict[str, Json] = {PREVIOUS: request.previous_interaction_id} if request.previous_interaction_id else {}
    steps = [step for _, step in own if isinstance(step, dict)]
    stored = None if request.store is False else history.with_own(steps)
    return ClientRequest(conversation, echo, to_store=stored)


def _model(request: RequestFields) -> str:
    if request.model is None:
        raise missing_field("model")
    model = request.model.removeprefix(_PREFIX)
    if not model.strip():
        raise InvalidRequest("model must not be empty.", param="model")
    return model


def _sampling(config: InteractionConfig) -> Sampling:
    return Sampling(
        config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_output_tokens,
        stop=tuple(config.stop_sequences or ()),
        seed=config.seed,
    )


def _own_words(config: InteractionConfig) -> Iterator[str]:
    """Yields the paths of words that only the API itself knows."""
    if config.thinking_level is not None and config.thinking_level.lower() not in LEVELS:
        yield f"{_CONFIG}.thinking_level"
    if config.thinking_summaries not in (None, *SUMMARIES):
        yield f"{_CONFIG}.thinking_summaries"


def _unsent(fields: JsonObject) -> Iterator[Notice]:
    """Yields a notice for every field that no other API has."""
    names = [name for name in FIELDS.unsent(fields) if fields[name] is not None]
    tier = fields.get("service_tier")
    if isinstance(tier, str) and tier.lower() not in TIERS.known:
        names.append("service_tier")
    config = fields.get(_CONFIG)
    if isinstance(config, dict):
        names += [f"{_CONFIG}.{name}" for name in CONFIG.unsent(config) if config[name] is not None]
    for name in names:
        detail = f"no other API has a field for {name[:80]!r}"
        yield Notice("decode", "dropped", "FIELD_NOT_SENT", detail, level="debug")
