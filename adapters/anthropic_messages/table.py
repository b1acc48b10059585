"""The table of the API: the fields of its requests, its words, and the fields of its events, for both directions.

`gateway.wires.table` says how a row is read. Unknown fields are legal; the messages and the system prompt stay untyped.
The published OpenAPI document is made from these types. Source: Anthropic, API reference, `POST /v1/messages`.
"""

from typing import Annotated, Any, Final

import msgspec

from adapters.anthropic_messages.response_models import MessageEvent
from gateway.core.conversation import ChoiceWord, Role
from gateway.dialects.field_types import FreeObject, Whole
from gateway.wires.table import (
    APART,
    NEVER,
    SAMPLED,
    Parameter,
    RequestTable,
    Words,
    event_fields,
    refused,
    reported,
)

# The routes of the API, which clients ask at the gateway and the gateway at a backend.
GENERATE_PATH: Final = "/v1/messages"
COUNT: Final = "/count_tokens"
MODELS_PATH: Final = "/v1/models"
# Of a choice of one tool the type is `tool`. Any other type is for a backend of the same API.
CHOICES: Final[Words[ChoiceWord]] = Words({"auto": "auto", "any": "required", "none": "none"})
ROLES: Final[Words[Role]] = Words(
    {"user": "user", "assistant": "assistant", "system": "system"}, {"developer": "system", "tool": "user"}
)
SCHEMA: Final = "json_schema"
EFFORTS: Final[Words[str]] = Words(
    {"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}, {"minimal": "low"}
)
# Anthropic, "Service tiers": `auto` is priority capacity where the organisation has it.
TIERS: Final[Words[str]] = Words(
    {"auto": "priority", "standard_only": "default"}, {"auto": "auto", "standard_only": "standard_only"}
)
# The HTTP status of each type of error. Source: Anthropic, API reference, errors.
ERRORS: Final[Words[int]] = Words(
    {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
    },
    {503: "overloaded_error"},
)

# A field that the row of its object describes in docs.
_UNLISTED: Final = Parameter(how=None)


class MessagesTool(msgspec.Struct, frozen=True):
    """An entry of `tools`: a function with a schema, or a tool that its `type` names (`bash_20250124`)."""

    name: str | None = None
    type: str | None = None
    description: str | None = None
    input_schema: FreeObject | None = None
    strict: bool | None = None


class MessagesToolChoice(msgspec.Struct, frozen=True):
    """`tool_choice`: of the type `auto`, `any`, `tool`, to which `name` belongs, or `none`. Any other type is for a
    backend of the same API."""

    type: Annotated[str, _UNLISTED]
    name: Annotated[str | None, _UNLISTED] = None
    disable_parallel_tool_use: Annotated[
        bool | None, Parameter("parallel_tool_calls", None, read=APART, write=APART)
    ] = None


class Thinking(msgspec.Struct, frozen=True):
    """`thinking`. `display` of `omitted` asks for thinking blocks without their text."""

    type: Annotated[str, _UNLISTED]
    budget_tokens: Annotated[Whole | None, _UNLISTED] = None
    display: Annotated[str | None, _UNLISTED] = None


class OutputFormat(msgspec.Struct, frozen=True):
    """A JSON schema that the answer must match, of the type `json_schema`. Any other type is for a backend of the same
    API."""

    type: Annotated[str, _UNLISTED]
    schema: Annotated[FreeObject | None, _UNLISTED] = None


class OutputConfig(msgspec.Struct, frozen=True):
    """`output_config`: how much the model thinks and says (`low`, `medium`, `high`, `xhigh` or `max`; any other word is
    for a backend of the same API), and in which format."""

    effort: Annotated[str | None, Parameter("reasoning_effort", None, read=APART, write=APART)] = None
    format: Annotated[OutputFormat | None, Parameter("response_format", None, read=APART, write=APART)] = None


class RequestMetadata(msgspec.Struct, frozen=True):
    """`metadata`."""

    user_id: Annotated[str | None, Parameter("user", None, read=APART)] = None


class AskedSummary(msgspec.Struct, frozen=True):
    """`compaction`: of the type `summarize`. Any other type is for a backend of the same API."""

    type: Annotated[str, _UNLISTED]


class MessageThread(msgspec.Struct, frozen=True):
    """`thread`: a conversation that the server keeps."""

    type: Annotated[str, _UNLISTED]


class MessagesFields(msgspec.Struct, frozen=True):
    """A request without its messages. None: the client did not set the field."""

    model: Annotated[str, Parameter("model", "required", read=APART, write=APART)]
    max_tokens: Annotated[
        Whole | None,
        Parameter("max_tokens", "required, but for a count", write=APART, also=("max_completion_tokens",)),
    ] = None
    system: Annotated[
        Any,
        Parameter(
            how="text or text blocks; a block that begins with `x-anthropic-billing-header:` is reported and left out, "
            "because it differs in every request"
        ),
    ] = None
    stream: Annotated[bool | None, Parameter(how="without it the answer is one JSON object")] = None
    stop_sequences: Annotated[
        list[str] | None,
        Parameter(
            "stop",
            "by the gateway where the backend has no such field; `stop_sequence` tells which one ended the answer, "
            "unless the backend ended it and does not say",
            read=lambda sequences: sequences or None,
            write=SAMPLED,
            handling="emulated",
        ),
    ] = None
    temperature: Annotated[float | None, Parameter("temperature", write=SAMPLED)] = None
    top_p: Annotated[float | None, Parameter("top_p", write=SAMPLED)] = None
    top_k: Annotated[Whole | None, Parameter("top_k")] = None
    tools: Annotated[list[MessagesTool] | None, Parameter("tools", "see below", read=APART, write=APART)] = None
    tool_choice: Annotated[
        MessagesToolChoice | None,
        Parameter(
            "tool_choice",
            "`disable_parallel_tool_use` is `parallel_tool_calls` of chat completions",
            read=APART,
            write=APART,
        ),
    ] = None
    thinking: Annotated[
        Thinking | None,
        Parameter(
            "thinking",
            "`budget_tokens` below 4096 is the effort `low`, below 16384 `medium`, else `high`, and beside "
            "`output_config.effort` it is left out, with a notice `FIELD_NOT_SENT`; a type without a budget above 0 "
            "reaches Gemini (`disabled`: the least thinking of the model; else its thoughts are asked for) and is "
            "reported elsewhere; `display: omitted` leaves out the text of thinking",
            read=APART,
            write=NEVER,
            handling="emulated",
        ),
    ] = None
    output_config: Annotated[
        OutputConfig | None,
        Parameter(
            how="`effort` is `reasoning_effort`, with `high` for `xhigh` and `max`; `format` is `response_format`; "
            "other fields in it are reported"
        ),
    ] = None
    output_format: Annotated[OutputFormat | None, Parameter(how="the older place of `output_config.format`")] = None
    metadata: Annotated[
        RequestMetadata | None,
        Parameter(how="`user_id` is `user`, longer than 64 characters as its SHA-256; other fields in it are reported"),
    ] = None
    thread: Annotated[
        MessageThread | None,
        reported("of type `continue`: refused, in the words that make Claude Code send the whole conversation"),
    ] = None
    cache_control: Annotated[
        Any,
        Parameter(
            "cache_control",
            "at the top level and in blocks: in the words of the backend ([prompt-caches.md](../prompt-caches.md))",
        ),
    ] = None
    compaction: Annotated[
        AskedSummary | None,
        Parameter(
            how="a compaction instead of an answer, by the gateway where the backend makes none "
            "([compression.md](../compression.md#compactions-that-a-client-asks-for)); its `instructions` are then "
            "reported",
            read=NEVER,
            write=NEVER,
            handling="emulated",
        ),
    ] = None
    mcp_servers: Annotated[list[Any] | None, refused("an empty list is accepted")] = None
    container: Annotated[Any, refused()] = None


TABLE: Final = RequestTable(
    MessagesFields,
    {
        "messages": Parameter("messages", "see below", read=APART, write=APART),
        "context_management": reported(
            "unless all of its edits are `compact_20260112`: the gateway then compacts for a backend that does not"
        ),
        "service_tier": reported(name="service_tier", write=APART),
        "inference_geo": reported(),
    },
)
FIELDS: Final = TABLE.sections[""]
OUTPUT_CONFIG: Final = TABLE.sections["output_config"]
METADATA: Final = TABLE.sections["metadata"]

EVENT_FIELDS: Final = event_fields(
    MessageEvent,
    {
        "": ("context_management", "error", "request_id"),
        "message": ("stop_details", "container", "context_management"),
        "delta": (
            "type",
            "text",
            "thinking",
            "signature",
            "partial_json",
            "citation",
            "stop_reason",
            "stop_sequence",
            "stop_details",
            "container",
        ),
    },
)
