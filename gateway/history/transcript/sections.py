"""Converts turns to sections: the texts, calls and results for a text-only backend, in chronological order."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from gateway.core.conversation import File, Image, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.errors import Unsupported
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.classify import is_system

Speaker = Literal["system", "user", "assistant", "tool"]


class Called(msgspec.Struct, frozen=True):
    """A call as text. The `labels` style does not write the id."""

    name: str
    arguments: str
    id: str = ""


class Section(msgspec.Struct, frozen=True):
    """One labelled piece of a transcript. `call_id` is None unless the speaker is a tool."""

    speaker: Speaker
    text: str
    calls: tuple[Called, ...] = ()
    call_id: str | None = None


class Sections(msgspec.Struct, frozen=True):
    """The sections of a conversation, and the content that they omit."""

    sections: tuple[Section, ...]
    notices: tuple[Notice, ...]


def sections_of(turns: Sequence[Turn], policy: Policy) -> Sections:
    """Converts every turn. Raises Unsupported for an image or a file unless the policy allows placeholders."""
    notices: list[Notice] = []
    sections: list[Section] = []
    for position, turn in enumerate(turns):
        index = position if turn.index is None else turn.index
        sections.extend(_turn(turn, index, policy, notices))
    return Sections(tuple(sections), tuple(notices))


def _turn(turn: Turn, index: int, policy: Policy, notices: list[Notice]) -> Iterator[Section]:
    texts: list[str] = []
    calls: list[Called] = []
    results: list[ToolResult] = []
    for part, block in enumerate(turn.blocks):
        match block:
            case ToolCall():
                calls.append(Called(block.name, block.arguments, block.id))
            case ToolResult():
                results.append(block)
            case Reasoning():
                notices.append(_left_out("REASONING_NOT_SENT", "reasoning", index))
            case _:
                texts.append(_text(block, f"messages[{index}].content[{part}]", index, policy, notices))
    if turn.name is not None:
        notices.append(_left_out("TURN_NAME_NOT_SENT", "the name of the speaker", index))
    if texts or calls or not results:
        yield Section(_speaker(turn), "\n".join(texts), tuple(calls), "" if turn.role == "tool" else None)
    for result in results:
        parts = (
            _text(block, f"messages[{index}].content[{part}]", index, policy, notices)
            for part, block in enumerate(result.content)
        )
        yield Section("tool", "\n".join(parts), (), result.call_id)


def _speaker(turn: Turn) -> Speaker:
    if is_system(turn):
        return "system"
    return "user" if turn.role == "user" else "tool" if turn.role == "tool" else "assistant"


_KIND: Final = re.compile(r"[A-Za-z0-9_]{1,32}")


def _text(block: Text | Image | File, param: str, index: int, policy: Policy, notices: list[Notice]) -> str:
    if isinstance(block, Text):
        return block.text
    kind = "image" if isinstance(block, Image) else block.kind if _KIND.fullmatch(block.kind) else "file"
    if policy.images == "refuse":
        raise Unsupported(f"{param} is not supported here: this model's backend takes text only.", param=param)
    notices.append(
        Notice(
            "flatten",
            "changed",
            "PART_NOT_SENT",
            f"a part of kind {kind} was replaced by the placeholder [{kind}]",
            index,
            level="warning",
        )
    )
    return f"[{kind}]"


def _left_out(rule: str, what: str, index: int) -> Notice:
    return Notice("flatten", "dropped", rule, f"the text has no place for {what}", index, level="debug")
