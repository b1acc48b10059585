"""Defines the responses of the dialect as msgspec types, for the published document.

The encoders write responses field by field, with a backend's unknown fields among them; unlisted fields are legal.
Clients may rely on the listed fields.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Violation
from gateway.core.notices import Notice
from gateway.dialects.usage import UsageNote


class InputTokenDetails(Struct, frozen=True):
    """What part of the input tokens was read from a cache or written to one."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokenDetails(Struct, frozen=True):
    """What part of the output tokens was reasoning."""

    reasoning_tokens: int


class ResponseUsage(Struct, frozen=True):
    """Token counts; `dragoman.usage` says how reliable they are."""

    input_tokens: int
    input_tokens_details: InputTokenDetails
    output_tokens: int
    output_tokens_details: OutputTokenDetails
    total_tokens: int


class ResponseNotes(Struct, frozen=True):
    """The gateway's notes about the response."""

    usage: UsageNote | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class IncompleteDetails(Struct, frozen=True):
    """Why a response is incomplete."""

    reason: Literal["max_output_tokens", "content_filter"]


class ResponseFailure(Struct, frozen=True):
    """Why a streamed response failed."""

    code: str
    message: str


class OutputItemObject(Struct, frozen=True):
    """An item of the output: a message, reasoning, or a call of a tool. Its other fields depend on its type."""

    id: str
    type: str


class ResponseObject(Struct, frozen=True):
    """A response. The other fields repeat those of the request. `store`: the response is stored; while it is made, that
    it will be if it is completed."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    model: str
    output: list[OutputItemObject]
    error: ResponseFailure | None
    incomplete_details: IncompleteDetails | None
    usage: ResponseUsage | None
    completed_at: int | None
    previous_response_id: str | None
    store: bool
    background: Literal[False]
    instructions: str | None
    tools: list[Any]
    tool_choice: Any
    parallel_tool_calls: bool
    text: dict[str, Any]
    reasoning: dict[str, Any]
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    truncation: str
    metadata: dict[str, Any]
    max_output_tokens: int | None
    max_tool_calls: int | None
    service_tier: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None
    dragoman: ResponseNotes | UnsetType = UNSET


class ResponseEvent(Struct, frozen=True):
    """An event of a streamed response. Its other fields depend on its type; the last event has the `response`."""

    type: str
    sequence_number: int
    response: ResponseObject | UnsetType = UNSET


class ResponseErrorObject(Struct, frozen=True):
    """The error. `code` is stable and meant for programs, `message` for people; `param` names the faulty field.

    `violations` are the broken rules of the history.
    """

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "upstream_error", "server_error"]
    param: str | None
    code: str | None
    violations: list[Violation] | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class ResponseErrorBody(Struct, frozen=True):
    """The body of every error response."""

    error: ResponseErrorObject


class CompactedResponse(Struct, frozen=True):
    """A compacted history: the messages of the user, and one item `compaction` behind them."""

    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[OutputItemObject]
    usage: ResponseUsage | None


class DeletedResponse(Struct, frozen=True, kw_only=True):
    """A response that is no longer stored."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class InputItemList(Struct, frozen=True):
    """A page of the items that a response answered, each with its id and its type. Without items the ids are null."""

    object: Literal["list"]
    data: list[OutputItemObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class InputTokenCount(Struct, frozen=True, kw_only=True):
    """The tokens of a request, estimated."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


class ResponsesModel(Struct, frozen=True, kw_only=True):
    """A model that clients may request. `created` is the gateway's own start."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["dragoman"] = "dragoman"


class UnlistedModels(Struct, frozen=True):
    """The reason why some available models are not in the list."""

    missing: str


class CodexEffort(Struct, frozen=True):
    """An effort that a person may choose, and a word about it."""

    effort: str
    description: str


class CodexTruncation(Struct, frozen=True):
    """How much of the output of a tool Codex sends."""

    mode: Literal["bytes", "tokens"]
    limit: int


class CodexModel(Struct, frozen=True, kw_only=True):
    """A model in the terms of Codex. Source: openai/codex, `codex-rs/protocol/src/openai_models.rs`, `ModelInfo`; Codex
    0.169 decides: one entry without a field that it requires, or with a word that it does not know, loses the list.

    `auto_compact_token_limit` is absent where the longest answer is not known. Older versions require
    `supports_reasoning_summaries` and `supports_parallel_tool_calls`, which newer ones do not read.
    """

    slug: str
    display_name: str
    description: str | None = None
    default_reasoning_level: str | UnsetType = UNSET
    supported_reasoning_levels: list[CodexEffort]
    shell_type: Literal["default", "disabled"]
    visibility: Literal["list"] = "list"
    supported_in_api: Literal[True] = True
    priority: int
    upgrade: None = None
    base_instructions: str
    supports_reasoning_summaries: bool
    support_verbosity: bool
    default_verbosity: None = None
    apply_patch_tool_type: Literal["freeform"] | None
    truncation_policy: CodexTruncation
    supports_parallel_tool_calls: bool
    context_window: int
    max_context_window: int
    auto_compact_token_limit: int | UnsetType = UNSET
    experimental_supported_tools: list[str]
    input_modalities: list[Literal["text", "image"]]


class ResponsesModelList(Struct, frozen=True, kw_only=True):
    """The models that clients may request, in `data`, and those whose context is known, in the terms of Codex, in
    `models`. `dragoman` is present when a backend's own models are not among them."""

    object: Literal["list"] = "list"
    data: list[ResponsesModel]
    models: list[CodexModel]
    dragoman: UnlistedModels | UnsetType = UNSET
