"""Defines a Messages request without its messages as msgspec types; the messages and the system prompt stay untyped.

Unknown fields are legal. The published OpenAPI document is made from these types.
"""

from typing import Annotated, Any, Final

import msgspec

from gateway.dialects.field_types import FreeObject, ModelName, OptionalModelName, Whole


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

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(msgspec.Struct, frozen=True):
    """`thinking`. `display` of `omitted` asks for thinking blocks without their text."""

    type: str
    budget_tokens: Whole | None = None
    display: str | None = None


class OutputFormat(msgspec.Struct, frozen=True):
    """A JSON schema that the answer must match, of the type `json_schema`. Any other type is for a backend of the same
    API."""

    type: str
    schema: FreeObject | None = None


class OutputConfig(msgspec.Struct, frozen=True):
    """`output_config`: how much the model thinks and says (`low`, `medium`, `high`, `xhigh` or `max`; any other word is
    for a backend of the same API), and in which format."""

    effort: str | None = None
    format: OutputFormat | None = None


class RequestMetadata(msgspec.Struct, frozen=True):
    """`metadata`."""

    user_id: str | None = None


class MessageThread(msgspec.Struct, frozen=True):
    """`thread`: a conversation that the server keeps."""

    type: str


class MessagesFields(msgspec.Struct, frozen=True):
    """A request without its messages. None: the client did not set the field."""

    model: str
    max_tokens: Whole | None = None
    system: Any = None
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Whole | None = None
    tools: list[MessagesTool] | None = None
    tool_choice: MessagesToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    metadata: RequestMetadata | None = None
    thread: MessageThread | None = None
    mcp_servers: list[Any] | None = None
    container: Any = None


_MESSAGES: Final = {
    "contains": {"not": {"type": "null"}},
    "items": {
        "description": "A message as Anthropic knows it: an object with `role` and `content`. A message of any other "
        "shape is repaired with a notice, or refused if `repair` is `strict`.",
    },
}


class CountTokensRequest(MessagesFields, frozen=True, kw_only=True):
    """A request whose tokens are counted. Fields that are not listed are legal.

    For the published document only. It also holds the fields that the reader checks with error texts of its own.
    """

    model: ModelName
    messages: Annotated[list[Any], msgspec.Meta(min_length=1, extra_json_schema=_MESSAGES)]


class MessagesRequest(CountTokensRequest, frozen=True, kw_only=True):
    """A request. Fields that are not listed are legal."""

    max_tokens: Whole


class ExplainMessagesRequest(CountTokensRequest, frozen=True, kw_only=True):
    """A request; without a model it is for the first one. `profile` and `settings` (policy keys) override those of the
    model."""

    model: OptionalModelName = msgspec.UNSET
    profile: str | None = None
    settings: FreeObject | None = None
