"""The table of the API: the fields of its requests, its words, and the fields of its events, for both directions.

`gateway.wires.table` says how a row is read. Items, and tools of unknown types, stay untyped; unknown fields are legal.
The published OpenAPI document is made from these types. Source: OpenAI, API reference, `POST /v1/responses`.
"""

from typing import Annotated, Any, Final

import msgspec

from adapters.openai_responses.response_models import ResponseEvent
from gateway.core.conversation import ChoiceWord, Json
from gateway.core.events import Reason
from gateway.dialects.field_types import FreeObject, Whole
from gateway.wires.response_schema import named_schema
from gateway.wires.table import APART, NEVER, SAMPLED, Parameter, RequestTable, Words, event_fields, refused, reported

# The routes of the API: clients ask the gateway below /v1, a backend is asked below its base URL.
GENERATE_PATH: Final = "/responses"
COUNT: Final = "/input_tokens"
MODELS_PATH: Final = "/models"
LOGPROBS: Final = "message.output_text.logprobs"
CHOICES: Final[Words[ChoiceWord]] = Words({"auto": "auto", "none": "none", "required": "required"})
# Why a response is incomplete, which is complete for any other reason.
INCOMPLETE: Final[Words[Reason]] = Words({"max_output_tokens": "length", "content_filter": "content_filter"})


class TextFormat(msgspec.Struct, frozen=True):
    """`text.format`. Of the type `json_schema`, the schema stands beside the type."""

    type: Annotated[str, Parameter(how=None)]
    name: Annotated[str | None, Parameter(how=None)] = None
    description: Annotated[str | None, Parameter(how=None)] = None
    schema: Annotated[FreeObject | None, Parameter(how=None)] = None
    strict: Annotated[bool | None, Parameter(how=None)] = None


def _read_format(form: TextFormat) -> Json:
    """Returns the canonical form of the answer's format, in which the schema stands in an object; None for text."""
    if form.type == "text":
        return None
    if form.type != "json_schema":
        return {"type": form.type}
    described = msgspec.to_builtins(form)
    del described["type"]
    return {"type": form.type, "json_schema": {name: value for name, value in described.items() if value is not None}}


def _write_format(response_format: Any) -> Json:
    """Returns the format without the object; None for one that the API does not have."""
    match response_format:
        case {"type": "json_schema", "json_schema": dict(said)}:
            return {**named_schema(said), "type": "json_schema"}
        case {"type": "json_object"}:
            return {"type": "json_object"}
        case _:
            return None


class TextOptions(msgspec.Struct, frozen=True):
    """`text`: the form and the length of the answer."""

    format: Annotated[TextFormat | None, Parameter("response_format", read=_read_format, write=_write_format)] = None
    verbosity: Annotated[str | None, Parameter("verbosity")] = None


class ReasoningOptions(msgspec.Struct, frozen=True):
    """`reasoning`. Summaries are not made here: clients get the reasoning that the backend shows."""

    effort: Annotated[str | None, Parameter("reasoning_effort", write=APART, also=("thinking",))] = None
    summary: Annotated[
        str | None, reported("the reasoning that a backend shows is sent whole; summaries are not made")
    ] = None
    generate_summary: Annotated[str | None, reported()] = None
    context: Annotated[Any, reported()] = None
    mode: Annotated[Any, reported()] = None


class ResponseStreamOptions(msgspec.Struct, frozen=True):
    """`stream_options`. Token counts are always sent."""

    include_obfuscation: Annotated[bool | None, reported("token counts are always sent")] = None


def _is_set(value: object) -> bool:
    return value is not None


class RequestFields(msgspec.Struct, frozen=True):
    """A Responses request without its input. None: the client did not set the field."""

    model: Annotated[str, Parameter("model", "required", read=APART, write=APART)]
    instructions: Annotated[str | None, Parameter(how="a system message before the history")] = None
    stream: Annotated[bool | None, Parameter()] = None
    stream_options: Annotated[ResponseStreamOptions | None, Parameter(how=None)] = None
    tools: Annotated[list[Any] | None, Parameter("tools", "see below", read=APART, write=APART)] = None
    tool_choice: Annotated[
        str | FreeObject | None,
        Parameter(
            "tool_choice",
            "`allowed_tools` is a filter (`TOOL_NOT_ALLOWED`); a choice that forces a tool which OpenAI runs, and a "
            "new word, is refused, except for a backend of this dialect",
            read=APART,
            write=APART,
        ),
    ] = None
    parallel_tool_calls: Annotated[bool | None, Parameter("parallel_tool_calls", write=APART)] = None
    max_output_tokens: Annotated[
        Whole | None, Parameter("max_tokens", write=APART, also=("max_completion_tokens",))
    ] = None
    temperature: Annotated[float | None, Parameter("temperature", write=SAMPLED)] = None
    top_p: Annotated[float | None, Parameter("top_p", write=SAMPLED)] = None
    presence_penalty: Annotated[float | None, Parameter("presence_penalty", write=NEVER)] = None
    frequency_penalty: Annotated[float | None, Parameter("frequency_penalty", write=NEVER)] = None
    text: Annotated[TextOptions | None, Parameter(how=None)] = None
    reasoning: Annotated[ReasoningOptions | None, Parameter(how=None)] = None
    include: Annotated[
        list[str] | None,
        Parameter(
            "logprobs",
            "`reasoning.encrypted_content` and `message.output_text.logprobs`; other words are reported",
            read=lambda words: True if LOGPROBS in words else None,
            write=NEVER,
        ),
    ] = None
    top_logprobs: Annotated[
        Whole | None,
        Parameter("top_logprobs", "refused above 0, except by a backend of this dialect", write=NEVER),
    ] = None
    truncation: Annotated[
        str | None,
        Parameter(
            how="`auto`: the settings decide what is left out of a long history", read=NEVER, handling="reported"
        ),
    ] = None
    max_tool_calls: Annotated[Whole | None, reported()] = None
    context_management: Annotated[
        list[Any] | None,
        reported(
            "also by a backend of this dialect, where `compaction` is in it and the backend is not known to compact"
        ),
    ] = None
    store: Annotated[bool | None, Parameter(how="true by default", handling="stored")] = None
    previous_response_id: Annotated[
        str | None,
        Parameter(how="the items of that response, and of those before it, stand before `input`", handling="stored"),
    ] = None
    conversation: Annotated[
        str | FreeObject | None,
        refused(asks=_is_set, reason="no conversation is stored; continue a response with previous_response_id"),
    ] = None
    prompt: Annotated[
        FreeObject | None, refused(asks=_is_set, reason="no prompt is stored; send its text in instructions or input")
    ] = None
    background: Annotated[
        bool | None, refused("unless it is false", reason="a response is made while its client waits; read it then")
    ] = None
    service_tier: Annotated[str | None, Parameter("service_tier")] = None
    prompt_cache_key: Annotated[str | None, Parameter("prompt_cache_key")] = None
    prompt_cache_options: Annotated[
        Any,
        Parameter(
            "prompt_cache_options",
            "in the words of the backend, as `prompt_cache_breakpoint` in parts "
            "([prompt-caches.md](../prompt-caches.md))",
        ),
    ] = None
    prompt_cache_retention: Annotated[str | None, Parameter("prompt_cache_retention")] = None
    safety_identifier: Annotated[str | None, Parameter("safety_identifier")] = None
    user: Annotated[str | None, Parameter("user")] = None
    metadata: Annotated[FreeObject | None, Parameter("metadata")] = None
    client_metadata: Annotated[FreeObject | None, reported()] = None
    moderation: Annotated[Any, reported()] = None


TABLE: Final = RequestTable(
    RequestFields, {"input": Parameter("messages", "required; a text or items", read=APART, write=APART)}
)
FIELDS: Final = TABLE.sections[""]
TEXT: Final = TABLE.sections["text"]
REASONING: Final = TABLE.sections["reasoning"]

# Source: OpenAI's reference of the Responses API.
EVENT_FIELDS: Final = event_fields(
    ResponseEvent,
    {
        "": (
            "item",
            "item_id",
            "output_index",
            "content_index",
            "summary_index",
            "annotation_index",
            "part",
            "delta",
            "text",
            "logprobs",
            "obfuscation",
            "annotation",
            "arguments",
            "input",
            "name",
            "refusal",
            "code",
            "message",
            "param",
            "error",
            "status",
            "output",
            "output_format",
            "background",
            "quality",
            "size",
            "partial_image_b64",
            "partial_image_index",
            "command",
            "command_index",
        ),
        "response": (
            "billing",
            "conversation",
            "moderation",
            "output_text",
            "image",
            "prompt",
            "prompt_cache_diagnostics",
            "prompt_cache_options",
            "prompt_cache_retention",
            "tool_usage",
            "user",
            "access_programs",
            "input_transformations",
        ),
    },
)
