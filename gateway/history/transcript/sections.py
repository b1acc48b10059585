"""Converts turns to sections: the texts, calls and results for a text-only backend, in chronological order."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from gateway.core.conversation import (
    Derivable,
    File,
    Image,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    has_parts,
    have_derived,
    is_system,
    item_of,
    keep_derived,
    kept,
)
from gateway.core.errors import Unsupported
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import Notice, NoticeRule
from gateway.core.policy import Policy

Speaker = Literal["system", "user", "assistant", "tool", "summary"]


class Called(msgspec.Struct, frozen=True):
    """A call as text. The `labels` style does not write the id."""

    name: str
    arguments: str
    id: str = ""


class Section(Derivable, msgspec.Struct, frozen=True):
    """One labelled piece of a transcript. `call_id` is None unless the speaker is a tool."""

    speaker: Speaker
    text: str
    calls: tuple[Called, ...] = ()
    call_id: str | None = None


class Sections(msgspec.Struct, frozen=True):
    """The sections of a conversation, and the content that they omit."""

    sections: tuple[Section, ...]
    notices: tuple[Notice, ...]


def sections_of(turns: Sequence[Turn], policy: Policy, paths: FieldPaths) -> Sections:
    """Converts every turn. Raises Unsupported for an image or a file unless the policy allows placeholders."""
    notices: list[Notice] = []
    sections: list[Section] = []
    again = have_derived(turns)
    for position, turn in enumerate(turns):
        if again and turn.index is not None and getattr(turn, "derived", None) is not None:
            of_turn = kept(turn, "sections", _plain)
            if of_turn is not None:
                sections += of_turn.sections
                notices += of_turn.notices
                continue
        # Most turns are one text or one result.
        if len(turn.blocks) == 1 and turn.name is None:
            only = turn.blocks[0]
            if type(only) is Text and turn.role != "tool":
                sections.append(Section(_speaker(turn), only.text))
                continue
            if type(only) is ToolResult and len(only.content) == 1 and type(part := only.content[0]) is Text:
                sections.append(Section("tool", part.text, call_id=only.call_id))
                continue
        index = position if turn.index is None else turn.index
        sections.extend(_turn(turn, index, policy, paths, notices))
    return Sections(tuple(sections), tuple(notices))


# It has no say in a turn without images and files.
_ANY_POLICY: Final = Policy()


def _plain(turn: Turn) -> Sections | None:
    """Returns the sections of a turn of the client without images and files, to be kept with it; None: it has some."""
    if has_parts(turn):
        return None
    notices: list[Notice] = []
    sections = tuple(_turn(turn, turn.index or 0, _ANY_POLICY, CANONICAL_PATHS, notices))
    for section in sections:
        keep_derived(section)
    return Sections(sections, tuple(notices))


def _turn(turn: Turn, index: int, policy: Policy, paths: FieldPaths, notices: list[Notice]) -> Iterator[Section]:
    texts: list[str] = []
    calls: list[Called] = []
    results: list[tuple[int, ToolResult]] = []
    for position, block in enumerate(turn.blocks):
        match block:
            case ToolCall():
                calls.append(Called(block.name, block.arguments, block.id))
            case ToolResult():
                results.append((position, block))
            case Reasoning():
                notices.append(_left_out("REASONING_NOT_SENT", "reasoning", index))
            case Text():
                texts.append(block.text)
            case _:
                param = paths.part.format(turn=index, item=item_of(block, position))
                texts.append(_placeholder(block, param, index, policy, notices))
    if turn.name is not None:
        notices.append(_left_out("TURN_NAME_NOT_SENT", "the name of the speaker", index))
    if texts or calls or not results:
        yield Section(_speaker(turn), "\n".join(texts), tuple(calls), "" if turn.role == "tool" else None)
    for position, result in results:
        result_texts: list[str] = []
        for inner, part in enumerate(result.content):
            if isinstance(part, Text):
                result_texts.append(part.text)
            else:
                param = paths.result_part.format(turn=index, item=item_of(result, position), part=inner)
                result_texts.append(_placeholder(part, param, index, policy, notices))
        yield Section("tool", "\n".join(result_texts), (), result.call_id)


def _speaker(turn: Turn) -> Speaker:
    if is_system(turn):
        return "system"
    if turn.summary:
        return "summary"
    return "user" if turn.role == "user" else "tool" if turn.role == "tool" else "assistant"


_KIND: Final = re.compile(r"[A-Za-z0-9_]{1,32}")


def _placeholder(block: Image | File, param: str, index: int, policy: Policy, notices: list[Notice]) -> str:
    kind = "image" if isinstance(block, Image) else block.kind if _KIND.fullmatch(block.kind) else "file"
    if policy.images == "refuse":
        raise Unsupported(f"{param} is not supported: this model's backend accepts text only.", param=param)
    notices.append(
        Notice(
            "flatten",
            "changed",
            "PART_NOT_SENT",
            f"a part of kind {kind} was replaced by the placeholder [{kind}]",
            index=index,
            level="warning",
        )
    )
    return f"[{kind}]"


def _left_out(rule: NoticeRule, what: str, index: int) -> Notice:
    return Notice("flatten", "dropped", rule, f"the text cannot represent {what}", index=index, level="debug")
