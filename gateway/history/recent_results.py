"""Writes the latest tool results as a Markdown section of the system prompt, for backends without tool roles."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Text, ToolResult, Turn, is_system
from gateway.core.notices import Notice
from gateway.core.policy import RecentToolResults

HEADING: Final = "## Recent tool results"
CUT: Final = "\n[cut]"
REDACTED: Final = "[redacted]"
# So much of a result behind what is shown is searched for the end of a secret. Patterns are not ours, and over a text
# of megabytes one whose work is the square of it would hold the interpreter.
LOOK_AHEAD: Final = 16_384


def add_recent_results(conversation: Conversation, options: RecentToolResults) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with the section at the end of its system prompt, newest result first.

    Results are fenced so that their content cannot end the section. The Notice counts omitted and cut results.
    """
    if not options.enabled:
        return conversation, []
    found = _latest(conversation.turns, options)
    shown, cut, room = [], 0, options.total_char_limit
    for name, result in found:
        limit = min(options.per_item_char_limit, room)
        if limit <= 0:
            break
        seen = result.text[: limit + LOOK_AHEAD]
        text = _redact(seen, options.redact)
        if len(text) > limit or len(seen) < len(result.text):
            text, cut = text[:limit] + CUT, cut + 1
        room -= min(len(text), limit)
        shown.append(_item(name, result.call_id, text))
    if not shown:
        return conversation, []
    notice = Notice(
        "guard",
        "added",
        "RECENT_RESULTS_ADDED",
        f"{len(shown)} recent tool results added to the system prompt, {cut} of them cut, "
        f"{len(found) - len(shown)} left out",
    )
    section = "\n\n".join((HEADING, *shown))
    return msgspec.structs.replace(conversation, turns=_with_section(conversation.turns, section)), [notice]


def _latest(turns: Sequence[Turn], options: RecentToolResults) -> list[tuple[str, ToolResult]]:
    names: dict[str, str] = {}
    found: list[tuple[str, ToolResult]] = []
    for turn in turns:
        names.update((call.id, call.name) for call in turn.calls)
        found.extend((names.get(result.call_id, "unknown"), result) for result in turn.results)
    allowed = options.allowed_tool_names
    kept = [(name, result) for name, result in reversed(found) if allowed is None or name in allowed]
    return kept[: options.lookback_count]


def _redact(text: str, patterns: Sequence[str]) -> str:
    for pattern in patterns:
        text = re.sub(pattern, REDACTED, text)
    return text


def _item(name: str, call_id: str, text: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    title = re.sub(r"\s+", " ", f"### {name} ({call_id})")
    return f"{title}\n\n{fence}\n{text}\n{fence}"


def _with_section(turns: tuple[Turn, ...], section: str) -> tuple[Turn, ...]:
    last = -1
    while last + 1 < len(turns) and is_system(turns[last + 1]):
        last += 1
    if last < 0:
        return (Turn("system", (Text(section),)), *turns)
    return (*turns[:last], turns[last].changed(*turns[last].blocks, Text(section)), *turns[last + 1 :])
