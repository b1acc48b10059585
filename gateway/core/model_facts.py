"""Defines what is known of a model beside its name, `ModelFacts`, and the beginning of a name for Claude Code."""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

# How much a model may be asked to think, by the words of OpenAI's `ReasoningEffort`; the least comes first.
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORT_WORDS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
PatchForm: TypeAlias = Literal["freeform", "none"]
_Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of a model; null: it is not known.

    - `display_name`: its name for people.
    - `max_output`: the most tokens of one answer.
    - `compact_at`: the tokens of a conversation from which a client should compact it.
    - `tools`, `parallel_calls`, `images`, `files`: whether it calls tools, several at once, and reads images and PDFs.
    - `efforts`: how much it may be asked to think; empty: it takes no effort. `default_effort`: what it takes unasked.
    - `apply_patch`: the form of Codex's tool for changes of files: `freeform`, or `none`: it is not offered.
    """

    display_name: str | None = None
    max_output: _Tokens | None = None
    compact_at: _Tokens | None = None
    tools: bool | None = None
    parallel_calls: bool | None = None
    images: bool | None = None
    files: bool | None = None
    efforts: tuple[Effort, ...] | None = None
    default_effort: Effort | None = None
    apply_patch: PatchForm | None = None

    def over(self, other: "ModelFacts") -> "ModelFacts":
        """Returns these facts, and those of the other where one is not known here."""
        known = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(other, **known)


UNKNOWN: Final = ModelFacts()

# A window of fewer tokens is a mistake of the list or file that has it: a client would compact without end.
SMALLEST_WINDOW: Final = 1024

# Claude Code shows only those models of a list whose ids begin so (2.1.330).
CLAUDE_BEGINNINGS: Final = ("claude", "anthropic")
# What such an id of any other model begins with.
CLAUDE_PREFIX: Final = "claude-dragoman-"


def claude_id(name: str) -> str:
    """Returns a model's name as Claude Code shows it in a list."""
    return name if name.lower().startswith(CLAUDE_BEGINNINGS) else f"{CLAUDE_PREFIX}{name}"
