"""Defines the policy of a model route: limits, modes and wordings. The keys are those of settings.json."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from gateway.providers.profile import NEUTRAL, Profile

CONTINUATION = "Please analyze the tool results above and provide your response."


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels that open a turn in flattened text."""

    system: str = "System"
    user: str = "User"
    assistant: str = "Assistant"
    tool_calls: str = "Tool calls"
    tool_result: str = "Tool result"
    summary: str = "Summary of earlier turns"

    def __post_init__(self) -> None:
        """Raises ValueError for labels that do not distinguish the turns."""
        labels = [getattr(self, name) for name in self.__struct_fields__]
        for label in labels:
            if not label.isprintable() or label.strip(" #*_->") != label or not label or set(label) & set(":()"):
                raise ValueError(
                    f"the label {label!r} must be printable text without : ( ), and without spaces or marks at its ends"
                )
        if len({label.casefold() for label in labels}) < len(labels):
            raise ValueError("two labels are the same")


# How a transcript marks its turns (`gateway.history.transcript.styles`).
StyleName: TypeAlias = Literal["labels", "json", "fenced"]


class FlattenOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options for flattening a conversation into text."""

    style: StyleName = "labels"
    labels: Labels = Labels()
    continuation: str = CONTINUATION


class WrapperTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A wrapper tool: the argument keys that hold the real call's name and arguments, in order of preference.

    Models whose prompt names `args` also write the keys of other formats that they were trained on.
    """

    name_keys: tuple[str, ...] = ("name",)
    args_keys: tuple[str, ...] = ("args", "arguments", "parameters", "input")


class RecentToolResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latest tool results, repeated in the system prompt.

    Limits are in characters; `redact` holds regular expressions.
    """

    enabled: bool = False
    lookback_count: int = 5
    per_item_char_limit: int = 800
    total_char_limit: int = 4000
    allowed_tool_names: tuple[str, ...] | None = None
    redact: tuple[str, ...] = ()


class LoopGuard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The action for one call that got one result `repeats` times in a row (0: no check)."""

    repeats: int = 3
    action: Literal["notice", "nudge", "no_tools"] = "notice"


class PromptCache(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the gateway adds for the prompt caches of providers.

    - `breakpoints`: marks on the stable beginning of the prompt, where the provider takes some and the client gives
      none.
    - `key`: a `prompt_cache_key`, made of the client's word for its user or session, where the backend has the field
      and the client's API has not.
    """

    breakpoints: bool = False
    key: bool = False


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every setting of a route; `settings.json` sets the defaults at its top level, a model entry overrides them.

    - Limits: None means no limit, 0 means the newest group only.
    - `orphaned_results`: how repair treats a tool result whose call is not in the history: keep it as a user's note, or
      drop it with a notice.
    - `trim_step`: once a limit is exceeded, this many messages (or results) are removed at once, so that a growing
      conversation keeps its beginning, and the backend its prompt cache, for as many turns. 1 keeps as much as the
      limits allow; a larger step keeps at most `trim_step` - 1 less than that, and never less than half a limit.
    - `forced_tools`: what becomes of a response without the call that `tool_choice` requires, where the backend has a
      field for it.
    - `images`: what becomes of images and files that the backend does not take. `describe`: another model describes the
      images (`vision.model`), and all else becomes a placeholder. `documents`: PDFs that it does not take are read as
      text; None: as `images` says.
    - `tool_loading`: the model gets the functions of a request at once (`all`), or one line of each and a function that
      searches for them (`on_demand`), where that makes the prompt shorter.
    - `base_model`: the model's name at its maker, where its name at the backend hides it; None: the latter. Rules for
      models go by it.
    - `max_tool_results` and `max_history_messages` are None on a native backend whose entries do not set them.
    """

    max_tool_results: int | None = 10
    max_history_messages: int | None = 50
    max_tool_result_chars: int | None = None
    trim_step: int = 10
    tool_result_overflow: Literal["elide", "drop"] = "elide"
    repair: Literal["repair", "strict", "off"] = "repair"
    orphaned_results: Literal["note", "drop"] = "note"
    flatten: FlattenOptions = FlattenOptions()
    disable_warp_tools: bool = False
    wrapper_tools: Mapping[str, WrapperTool] = msgspec.field(default_factory=lambda: {"call_mcp_tool": WrapperTool()})
    wrapper_failure: Literal["error", "pass"] = "error"
    images: Literal["refuse", "placeholder", "describe"] = "refuse"
    documents: Literal["text"] | None = None
    profile: Profile = NEUTRAL
    base_model: str | None = None
    recent_tool_results: RecentToolResults = RecentToolResults()
    loop_guard: LoopGuard = LoopGuard()
    prompt_cache: PromptCache = PromptCache()
    forced_tools: Literal["notice", "error"] = "notice"
    tool_loading: Literal["all", "on_demand"] = "all"

    def __post_init__(self) -> None:
        """Raises ValueError for a step below 1."""
        if self.trim_step < 1:
            raise ValueError(f"trim_step must be a whole number of 1 or more; it is {self.trim_step}")
