"""The envelope of a chat completions request as msgspec types: everything but the messages, which stay as they came.

Fields we do not know are legal. The published OpenAPI document is made from these types.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from gateway.types import ToolChoice

# Any: msgspec cannot read the recursive Json type.
FreeObject: TypeAlias = dict[str, Any]


class StreamOptions(msgspec.Struct, frozen=True):
    """`stream_options`. `include_usage` asks for a last chunk with the token counts."""

    include_usage: bool | None = None


class FunctionSpec(msgspec.Struct, frozen=True):
    """A function that the model may call; `parameters` is a JSON Schema."""

    name: str
    description: str | None = None
    parameters: FreeObject | None = None
    strict: bool | None = None


class Tool(msgspec.Struct, frozen=True):
    """An entry of `tools`. Only the type `function` is known here; other types reach a native backend as they are."""

    type: str = "function"
    function: FunctionSpec | None = None


class FunctionName(msgspec.Struct, frozen=True):
    """A function by its name."""

    name: str


class ForcedTool(msgspec.Struct, frozen=True):
    """`tool_choice` as an object."""

    type: str = "function"
    function: FunctionName | None = None


class Envelope(msgspec.Struct, frozen=True):
    """A chat completions request without its messages. None: the client did not say."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: str | ForcedTool | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    n: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: dict[str, float] | None = None
    response_format: FreeObject | None = None
    functions: list[FunctionSpec] | None = None
    function_call: str | FunctionName | None = None


class ChatCompletionRequest(Envelope, frozen=True, kw_only=True):
    """The whole request, for the published document only: reading it never judges the shape of a message."""

    messages: list[FreeObject]


TOOL_CHOICES: Final[Mapping[str, ToolChoice]] = {"auto": "auto", "none": "none", "required": "required"}
