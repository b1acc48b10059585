"""Describes, as data, by which fields a request says what of the prompt its provider is to keep in a cache."""

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec

# The field of a part, a call or a tool that ends a prefix of the prompt: that of Anthropic, and that of OpenAI.
CacheMark: TypeAlias = Literal["cache_control", "prompt_cache_breakpoint"]
# The field of a request: Anthropic's marks the end of the prompt, OpenAI's holds the options of all breakpoints.
CacheField: TypeAlias = Literal["cache_control", "prompt_cache_options"]
MARKS: Final[tuple[CacheMark, ...]] = ("cache_control", "prompt_cache_breakpoint")
REQUEST_FIELDS: Final[tuple[CacheField, ...]] = ("cache_control", "prompt_cache_options")
# How long what a mark ends is kept, in seconds.
LIFETIMES: Final = {"5m": 300, "30m": 1800, "1h": 3600, "12h": 43200}


class CacheRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which marks a provider accepts, and where.

    - `mark`: the field that ends a prefix.
    - `places`: `blocks` where every block of a message, every call, result and tool may have it; `parts` where the
      parts of text and the images of messages of `roles` may.
    - `roles`: see `places`.
    - `lifetimes`: those that a mark may ask for, the shortest first, which is that of a mark without one.
    - `most`: how many marks a request may have.
    - `request`: the field of the request beside the messages; null: it has none.
    - `options`: what that field may hold beside the lifetime.
    - `models`: a regular expression for the whole name of each model that takes marks, without the vendor before the
      last slash.
    """

    mark: CacheMark
    places: Literal["blocks", "parts"] = "parts"
    roles: tuple[str, ...] = ("system", "developer", "user", "tool")
    lifetimes: tuple[str, ...] = ("5m",)
    most: int = 4
    request: CacheField | None = None
    options: tuple[str, ...] = ()
    models: str = ".*"

    def __post_init__(self) -> None:
        """Raises ValueError for names that are no regular expression, and for lifetimes that are not known."""
        try:
            re.compile(self.models)
        except re.error as error:
            raise ValueError(f"models must be a regular expression: {error}") from error
        if not self.lifetimes or any(one not in LIFETIMES for one in self.lifetimes):
            raise ValueError(f"lifetimes must be one or more of {', '.join(LIFETIMES)}")

    def govern(self, model: str) -> bool:
        """Returns whether the model with this name takes marks."""
        return re.fullmatch(self.models, model.rpartition("/")[2]) is not None

    def new_mark(self, lifetime: str | None = None) -> dict[str, Any]:
        """Returns a mark as the field of what has it, for one of the lifetimes."""
        mark = {"type": "ephemeral"} if self.mark == "cache_control" else {"mode": "explicit"}
        if lifetime is not None and lifetime != self.lifetimes[0]:
            mark["ttl"] = lifetime
        return {self.mark: mark}

    def nearest(self, lifetime: str) -> str:
        """Returns the shortest lifetime that is no shorter than this one of LIFETIMES, else the longest."""
        long_enough = [one for one in self.lifetimes if LIFETIMES[one] >= LIFETIMES[lifetime]]
        return (long_enough or self.lifetimes[-1:])[0]


# Anthropic, "Prompt caching": four breakpoints; tools, the system prompt and the blocks of messages may have one, but
# not thinking and empty text; an automatic one for the whole request, which counts among the four; a longer lifetime
# must stand before a shorter one. (The package anthropic, `types/cache_control_ephemeral_param.py`.)
MESSAGES_CACHE: Final = CacheRules(
    mark="cache_control", places="blocks", lifetimes=("5m", "1h"), request="cache_control"
)
# OpenAI, "Prompt caching", and the package openai, `types/chat/completion_create_params.py`: "Supported for `gpt-5.6`
# and later models. Each request can write up to four breakpoints", of which an implicit one is the end of the prompt.
# Parts of text, images and files of input have one, the output of the assistant has none.
_OPENAI_MODELS: Final = r"gpt-(5\.([6-9]|[1-9][0-9])|[6-9]|1[0-9])(?![0-9]).*"
CHAT_CACHE: Final = CacheRules(
    mark="prompt_cache_breakpoint",
    lifetimes=("30m",),
    request="prompt_cache_options",
    options=("mode",),
    models=_OPENAI_MODELS,
)
# `types/responses/response_create_params.py`.
RESPONSES_CACHE: Final = msgspec.structs.replace(
    CHAT_CACHE, lifetimes=("30m", "12h"), options=("mode", "prewarm", "comparison_response_id")
)
