"""Keeps system text at its place where a backend takes it only before the conversation: as marked text of the user.

Moved to the front, each new message would change the beginning of the request, which ends the prompt cache of the
provider and the validity of signed thinking, and would be read before what it follows (Anthropic, "Prompt caching").
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Block, Conversation, Text, ToolResult, Turn, is_system
from gateway.core.notices import Action, Notice, NoticeRule
from gateway.history.classify import system_prefix

OPEN: Final = "<system_message>\n"
CLOSE: Final = "\n</system_message>"
_ASKING: Final = frozenset({"user", "tool"})
# The brackets that a model may read as those of the mark. No blank is looked at twice: a text may be blanks alone.
_MARK: Final = re.compile("[<\uff1c\ufe64](?=[ \t]*+[/\uff0f]?[ \t]*+system_message)", re.IGNORECASE)
_NAME: Final = "system_message"
_ESCAPED: Final = "&lt;"


def keep_in_place(conversation: Conversation, *, native: bool = False) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with every system turn behind another turn as a marked turn of the user, and the
    notices. A mark that stands in other words is escaped in every request, with or without such a turn, so that the
    text of a message never depends on what follows it.

    `native`: the model takes a system message where Anthropic permits one, which then stays as it is.
    """
    turns = conversation.turns
    leading = system_prefix(turns)
    notices: list[Notice] = []
    permitted = _permitted(turns, leading) if native else frozenset()
    kept: list[Turn] = []
    for at, turn in enumerate(turns[leading:], leading):
        if at in permitted or not (is_system(turn) or _is_marked(turn)):
            kept.append(turn)
        else:
            kept += _kept(turn, notices)
    if not notices:
        return conversation, notices
    return msgspec.structs.replace(conversation, turns=(*turns[:leading], *kept)), notices


def behind_others(turns: Sequence[Turn]) -> bool:
    """Returns whether a system turn stands behind another turn."""
    roles = [is_system(turn) for turn in turns]
    return True in roles[roles.index(False) :] if False in roles else False


def _permitted(turns: Sequence[Turn], leading: int) -> frozenset[int]:
    """Returns the positions of the system turns at which Anthropic accepts one: of text alone, behind the user's words
    or results, and at the end or before an answer. Neighbouring ones are sent as one.

    Source: Anthropic, "Mid-conversation system messages", placement.
    """
    found: list[int] = []
    run: list[int] = []
    before = ""
    for at, turn in enumerate(turns[leading:], leading):
        if is_system(turn):
            run.append(at)
            continue
        if turn.role == "assistant" and before in _ASKING:
            found += run
        run, before = [], turn.role
    if before in _ASKING:
        found += run
    return frozenset([at for at in found if turns[at].blocks and all(type(one) is Text for one in turns[at].blocks)])


def _kept(turn: Turn, notices: list[Notice]) -> Iterator[Turn]:
    escaped = _escaped(turn)
    if escaped is not turn:
        detail = "text with the mark of a system message; its brackets were escaped"
        notices.append(_notice("changed", "SYSTEM_MARK_ESCAPED", detail, turn))
    if not is_system(turn):
        yield escaped
    elif turn.blocks:
        unsaid = "" if turn.name is None else "; its name is not sent"
        detail = f"a {turn.role} message is sent at its place as marked text of the user{unsaid}"
        notices.append(_notice("changed", "SYSTEM_AS_USER", detail, turn))
        yield _reminder(escaped)
    else:
        notices.append(_notice("dropped", "EMPTY_TURN_NOT_SENT", "a message without content is not sent", turn))


def _reminder(turn: Turn) -> Turn:
    blocks = list(turn.blocks)
    texts = [at for at, block in enumerate(blocks) if type(block) is Text] or [0]
    if type(blocks[texts[0]]) is not Text:
        blocks.insert(0, Text(""))
    for at, before, after in ((texts[0], OPEN, ""), (texts[-1], "", CLOSE)):
        block = blocks[at]
        if type(block) is Text:
            blocks[at] = Text(f"{before}{block.text}{after}", block.extra)
    return msgspec.structs.replace(turn.changed(*blocks), role="user", name=None, synthesized=True)


def _is_marked(turn: Turn) -> bool:
    """Returns whether a text of the turn has a mark. Reads all of every request, with one call for a text."""
    for block in turn.blocks:
        if type(block) is Text:
            if _has_mark(block.text):
                return True
        elif type(block) is ToolResult:
            for part in block.content:
                if type(part) is Text and _has_mark(part.text):
                    return True
    return False


def _has_mark(text: str) -> bool:
    # A regular expression takes twenty times as long to find that there is none.
    return _NAME in text.casefold() and _MARK.search(text) is not None


def _escaped(turn: Turn) -> Turn:
    blocks = tuple([_escaped_block(block) for block in turn.blocks])
    unchanged = all(new is old for new, old in zip(blocks, turn.blocks, strict=True))
    return turn if unchanged else turn.changed(*blocks)


def _escaped_block(block: Block) -> Block:
    if type(block) is Text:
        return Text(_MARK.sub(_ESCAPED, block.text), block.extra) if _has_mark(block.text) else block
    if type(block) is ToolResult and any(type(part) is Text and _has_mark(part.text) for part in block.content):
        parts = [
            Text(_MARK.sub(_ESCAPED, part.text), part.extra) if type(part) is Text else part for part in block.content
        ]
        return msgspec.structs.replace(block, content=tuple(parts))
    return block


def _notice(action: Action, rule: NoticeRule, detail: str, turn: Turn) -> Notice:
    return Notice("encode", action, rule, detail, index=turn.index)
