"""Translates the fields beside the input to those of the conversation, one table for each way.

A field is honoured under its canonical name, reported by a notice, or refused: what refers to state that only OpenAI
has is never ignored, because the answer would rest on a part of the history. `docs/dialects/openai_responses.md` has a
row for each.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from adapters.openai_responses.client.request_models import RequestFields, TextFormat
from adapters.openai_responses.tools import field_not_sent
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import Unsupported
from gateway.core.notices import Notice

LOGPROBS: Final = "message.output_text.logprobs"
ENCRYPTED: Final = "reasoning.encrypted_content"

# Their canonical names.
_HONOURED: Final[Mapping[str, str]] = {
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "top_logprobs": "top_logprobs",
    "parallel_tool_calls": "parallel_tool_calls",
    "service_tier": "service_tier",
    "prompt_cache_key": "prompt_cache_key",
    "prompt_cache_retention": "prompt_cache_retention",
    "safety_identifier": "safety_identifier",
    "user": "user",
    "metadata": "metadata",
}
# Fields that have an effect only at OpenAI.
_REPORTED: Final = frozenset({"context_management", "max_tool_calls", "client_metadata", "moderation"})
_REASONING_REPORTED: Final = ("summary", "generate_summary", "context", "mode")


def canonical_params(request: RequestFields) -> dict[str, Json]:
    """Returns the fields that have a canonical name, under that name."""
    params: dict[str, Json] = {}
    for field, name in _HONOURED.items():
        if (value := getattr(request, field)) is not None:
            params[name] = value
    if request.text is not None:
        if request.text.verbosity is not None:
            params["verbosity"] = request.text.verbosity
        if (form := request.text.format) is not None and form.type != "text":
            params["response_format"] = _response_format(form)
    if request.reasoning is not None and request.reasoning.effort is not None:
        params["reasoning_effort"] = request.reasoning.effort
    if request.include is not None and LOGPROBS in request.include:
        params["logprobs"] = True
    return params


def _response_format(form: TextFormat) -> dict[str, Json]:
    if form.type != "json_schema":
        return {"type": form.type}
    described = msgspec.to_builtins(form)
    del described["type"]
    return {"type": form.type, "json_schema": {name: value for name, value in described.items() if value is not None}}


def reported_fields(request: RequestFields, fields: JsonObject) -> Iterator[Notice]:
    """Yields a notice for every field of the request that no backend of another dialect gets."""
    known = RequestFields.__struct_fields__
    for name, value in fields.items():
        if value is not None and (name in _REPORTED or name not in known):
            yield field_not_sent(name)
    if request.reasoning is not None:
        for name in _REASONING_REPORTED:
            if getattr(request.reasoning, name) is not None:
                yield field_not_sent(f"reasoning.{name}")
    for position, word in enumerate(request.include or ()):
        if word not in (LOGPROBS, ENCRYPTED):
            yield field_not_sent(f"include[{position}]")
    if request.stream_options is not None and request.stream_options.include_obfuscation:
        yield field_not_sent("stream_options.include_obfuscation")
    if request.truncation == "auto":
        yield field_not_sent("truncation")


def check_unsupported(request: RequestFields) -> None:
    """Raises Unsupported for the first field that refers to what only OpenAI has."""
    for field, reason in _REFUSED.items():
        if getattr(request, field) not in (None, False):
            raise Unsupported(f"{field} is not supported: {reason}.", param=field)


_REFUSED: Final[Mapping[str, str]] = {
    "conversation": "no conversation is stored; continue a response with previous_response_id",
    "prompt": "no prompt is stored; send its text in instructions or input",
    "background": "a response is made while its client waits; read it then",
}
