"""Decodes a completions request into a Conversation of one user turn: a chat model answers to the prompt."""

from collections.abc import Mapping
from typing import Final

from adapters.openai_completions import DIALECT
from adapters.openai_completions.client.paths import PATHS
from adapters.openai_completions.table import DEFAULT_MAX_TOKENS, FIELDS, CompletionFields
from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.notices import Notice
from gateway.core.state_rule import NO_STATE
from gateway.dialects.document import Document, kind_of
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field, read_fields

# What is no parameter of the conversation.
_APART: Final = frozenset({"prompt", *FIELDS.reasons, *FIELDS.reported})


def decode(document: Document) -> Conversation:
    """Decodes one request. Fault: TEXT_UNICODE. Raises InvalidRequest that names the parameter."""
    fields = document.fields
    request = read_fields(fields, CompletionFields)
    if not request.model.strip():
        raise InvalidRequest("model must not be empty.", param="model")
    FIELDS.check(fields)
    prompt = _prompt(fields)
    faults = Faults(paths=PATHS)
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, "prompt")
    options = request.stream_options
    limit = DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens
    params = {name: value for name, value in fields.items() if name not in _APART}
    return Conversation(
        (Turn("user", (Text(prompt),), index=0),),
        model=request.model,
        sampling=request.sampling(limit),
        stream=request.stream is True,
        include_usage=options is not None and options.include_usage is True,
        faults=tuple(faults.found),
        params={**params, "max_tokens": limit},
        dialect=DIALECT,
        paths=PATHS,
        notices=tuple(
            [_unread(name) for name, value in fields.items() if name in FIELDS.reported and value is not None]
        ),
        reads=frozenset(),
        holds=NO_STATE,
    )


def _prompt(fields: Mapping[str, Json]) -> str:
    if fields.get("prompt") is None:
        raise missing_field("prompt")
    prompt = fields["prompt"]
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        return prompt[0]
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):
        message = "prompt must be text or an array of one text: tokens and several prompts are not supported."
        raise Unsupported(message, param="prompt")
    raise InvalidRequest(f"prompt must be text; it is {kind_of(prompt)}.", code="invalid_type", param="prompt")


def _unread(name: str) -> Notice:
    detail = f"a completion has no field {name!r}"
    return Notice("decode", "dropped", "FIELD_NOT_SENT", detail, level="warning", fields=(name,))
