"""A conversation -> the same conversation within the limits of its route, cut between atomic groups only."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from gateway.conversation.groups import groups_before
from gateway.conversation.limits import Fate, Plan, plan
from gateway.conversation.shorten import elision, is_elided, shorten, with_text
from gateway.notices import Action, Notice
from gateway.policy import Policy
from gateway.types import Conversation, ToolResult, Turn


def trim(conversation: Conversation, policy: Policy) -> tuple[Conversation, list[Notice]]:
    """The conversation within the policy's limits, and what was taken away.

    Expects a repaired conversation (an unrepaired one stays as broken as it was). First every result is cut to its
    own limit, then the oldest results go, then the oldest history. Trimming again changes nothing.
    """
    turns, notices = shorten(conversation.turns, policy.max_tool_result_chars)
    planned = plan(turns, policy)
    if planned.results or planned.history:
        notices += _limit_notices(planned, policy)
        notices += _range_notices(turns, planned.fates)
        notices += _prefix_notice(turns, planned, policy)
        turns = tuple(_applied(turns, planned.fates))
    if not notices:
        return conversation, notices
    return msgspec.structs.replace(conversation, turns=turns), notices


def _applied(turns: Sequence[Turn], fates: Sequence[Fate]) -> Iterator[Turn]:
    for turn, fate in zip(turns, fates, strict=True):
        if fate == "keep":
            yield turn
        elif fate == "elide":
            yield turn.changed(*(_elided(block) if isinstance(block, ToolResult) else block for block in turn.blocks))


def _elided(result: ToolResult) -> ToolResult:
    """Also a result that is shorter than the marker: the limit counts results, and a model that sees some old ones
    whole and others not would take the marker for what the tool said."""
    if is_elided(result.text):
        return result
    text = with_text(result, elision(len(result.text))).content[0]
    return msgspec.structs.replace(result, content=(text,))


def _limit_notices(planned: Plan, policy: Policy) -> Iterator[Notice]:
    if planned.results:
        action: Action = "dropped" if policy.tool_result_overflow == "drop" else "shortened"
        yield _limit(action, "TOOL_RESULTS_LIMITED", "tool results", planned.results.before, planned.results.after)
    if planned.history:
        yield _limit("dropped", "HISTORY_LIMITED", "history messages", planned.history.before, planned.history.after)


def _limit(action: Action, rule: str, what: str, before: int, after: int) -> Notice:
    return Notice("trim", action, rule, f"Limiting {what} from {before} to {after}")


def _range_notices(turns: Sequence[Turn], fates: Sequence[Fate]) -> Iterator[Notice]:
    """Which messages it was, for whoever explains a request. (Results go oldest first: their span has no gaps.)"""
    for dropped, run in groupby(range(len(turns)), key=lambda n: fates[n] == "drop"):
        if dropped:
            positions = list(run)
            yield _range(
                turns, positions[0], positions[-1], "dropped", "MESSAGES_DROPPED", "messages {} to {} were left out"
            )
    if elided := [n for n, fate in enumerate(fates) if fate == "elide"]:
        detail = "the results in messages {} to {} were elided"
        yield _range(turns, elided[0], elided[-1], "shortened", "TOOL_RESULTS_ELIDED", detail)


def _range(turns: Sequence[Turn], first: int, last: int, action: Action, rule: str, detail: str) -> Notice:
    start = _index(turns, first)
    return Notice("trim", action, rule, detail.format(start, _index(turns, last)), start, level="debug")


def _prefix_notice(turns: Sequence[Turn], planned: Plan, policy: Policy) -> Iterator[Notice]:
    """Compare with what the request before this one kept: it ended where the model's newest turn begins."""
    newest = next((n for n in range(len(turns) - 1, -1, -1) if turns[n].role == "assistant"), 0)
    known = None if planned.groups is None else groups_before(planned.groups, turns, newest)
    before = plan(turns[:newest], policy, known).fates
    broken = next((n for n in range(newest) if before[n] != planned.fates[n]), None)
    if broken is not None:
        index = _index(turns, broken)
        detail = f"the kept prefix changed at message {index}: a backend's prompt cache ends there"
        yield Notice("trim", "seen", "PREFIX_CHANGED", detail, index)


def _index(turns: Sequence[Turn], position: int) -> int:
    index = turns[position].index
    return position if index is None else index
