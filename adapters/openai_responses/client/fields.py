"""Translates the fields beside the input to those of the conversation, by the rows of the table.

A field is honoured under its canonical name, reported by a notice, or refused: what refers to state that only OpenAI
has is never ignored, because the answer would rest on a part of the history. `docs/dialects/openai_responses.md` has a
row for each.
"""

from collections.abc import Iterator
from typing import Final

from adapters.openai_responses.table import FIELDS, LOGPROBS, REASONING, TEXT, RequestFields
from adapters.openai_responses.tools import field_not_sent
from gateway.core.conversation import Json, JsonObject
from gateway.core.notices import Notice

ENCRYPTED: Final = "reasoning.encrypted_content"
# Of its words, `auto` alone asks for anything.
_TRUNCATION: Final = "truncation"


def canonical_params(request: RequestFields) -> dict[str, Json]:
    """Returns the fields that have a canonical name, under that name."""
    params = FIELDS.read(request)
    if request.text is not None:
        params |= TEXT.read(request.text)
    if request.reasoning is not None:
        params |= REASONING.read(request.reasoning)
    return params


def reported_fields(request: RequestFields, fields: JsonObject) -> Iterator[Notice]:
    """Yields a notice for every field of the request that no backend of another dialect gets."""
    for name in FIELDS.unsent(fields):
        if fields[name] is not None and name != _TRUNCATION:
            yield field_not_sent(name)
    if request.reasoning is not None:
        for name in REASONING.reported:
            if getattr(request.reasoning, name) is not None:
                yield field_not_sent(f"reasoning.{name}")
    for position, word in enumerate(request.include or ()):
        if word not in (LOGPROBS, ENCRYPTED):
            yield field_not_sent(f"include[{position}]")
    if request.stream_options is not None and request.stream_options.include_obfuscation:
        yield field_not_sent("stream_options.include_obfuscation")
    if request.truncation == "auto":
        yield field_not_sent(_TRUNCATION)


def check_unsupported(fields: JsonObject) -> None:
    """Raises Unsupported for the first field that refers to what only OpenAI has."""
    FIELDS.check(fields)
