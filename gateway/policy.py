"""What a model route asks of the passes: limits, modes and wordings. The keys are those of settings.json."""

from collections.abc import Mapping
from typing import Literal

import msgspec

CONTINUATION = "Please analyze the tool results above and provide your response."


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words that open a turn in flattened text."""

    system: str = "System"
    user: str = "User"
    assistant: str = "Assistant"
    tool_calls: str = "Tool calls"
    tool_result: str = "Tool result"


class FlattenOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a conversation becomes text."""

    style: Literal["labels", "json", "fenced"] = "labels"
    labels: Labels = Labels()
    continuation: str = CONTINUATION


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A wrapper tool: the argument keys that hold the real call's name and arguments, in order of preference."""

    name_keys: tuple[str, ...] = ("name",)
    args_keys: tuple[str, ...] = ("args",)


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a route may set; `settings.json` sets the defaults at its top level, a model entry overrides them.

    Limits: None means no limit, 0 means the newest group only.
    """

    max_tool_results: int | None = 10
    max_history_messages: int | None = 50
    max_tool_result_chars: int | None = None
    tool_result_overflow: Literal["elide", "drop"] = "elide"
    repair: Literal["repair", "strict", "off"] = "repair"
    flatten: FlattenOptions = FlattenOptions()
    disable_warp_tools: bool = False
    envelopes: Mapping[str, Envelope] = msgspec.field(default_factory=lambda: {"call_mcp_tool": Envelope()})
    envelope_failure: Literal["error", "pass"] = "error"
    images: Literal["refuse", "placeholder"] = "refuse"
