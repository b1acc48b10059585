"""Trims a conversation to the limits of its route, with cuts between atomic groups only."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, ToolResult, Turn, derived_of, index_of, keep_derived, kept
from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.core.policy import Policy
from gateway.history.groups import groups_before
from gateway.history.trim.plan import Fate, Plan, plan
from gateway.history.trim.truncate import elision, is_elided, shorten, shorten_pinned, with_text

# The rules of the notices by which limits say that they have removed or shortened old turns.
LIMITED: Final = frozenset({"TOOL_RESULTS_LIMITED", "HISTORY_LIMITED"})


def trim(conversation: Conversation, policy: Policy) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation within the policy's limits, and notices of the removed parts.

    Expects a repaired conversation (an unrepaired one stays as invalid as it was). First every result is cut to its own
    limit, then the oldest results are removed, then the oldest history. Trimming again changes nothing.
    """
    turns, notices = shorten(conversation.turns, policy.max_tool_result_chars)
    planned = plan(turns, policy)
    notices += _limit_notices(planned, policy)
    notices += _beyond_notice(planned, policy)
    if planned.results or planned.history:
        notices += _range_notices(turns, planned.fates)
        pinned = {n: shorten_pinned(turns[n], notices) for n, fate in enumerate(planned.fates) if fate == "shorten"}
        notices += _opening_notice(turns, planned)
        notices += _prefix_notice(turns, planned, policy)
        turns = tuple(_applied(turns, planned.fates, pinned))
    if not notices:
        return conversation, notices
    return msgspec.structs.replace(conversation, turns=turns), notices


def _applied(turns: Sequence[Turn], fates: Sequence[Fate], pinned: Mapping[int, Turn]) -> Iterator[Turn]:
    for position, (turn, fate) in enumerate(zip(turns, fates, strict=True)):
        if fate == "keep":
            yield turn
        elif fate == "elide":
            elided = kept(turn, "elided", _with_elided)
            if derived_of(turn) is not None:
                keep_derived(elided)
            yield elided
        elif fate == "shorten":
            yield pinned[position]


def _with_elided(turn: Turn) -> Turn:
    return turn.changed(*[_elided(block) if isinstance(block, ToolResult) else block for block in turn.blocks])


def _elided(result: ToolResult) -> ToolResult:
    """Replaces the text of a result by the marker, also when the result is shorter than the marker.

    The limit counts results, and a model that reads some old results whole and others not would take the marker for the
    tool's output.
    """
    if is_elided(result.text):
        return result
    text = with_text(result, elision(len(result.text))).content[0]
    return msgspec.structs.replace(result, content=(text,))


def _limit_notices(planned: Plan, policy: Policy) -> Iterator[Notice]:
    if planned.results:
        action: Action = "dropped" if policy.tool_result_overflow == "drop" else "shortened"
        yield _limit(action, "TOOL_RESULTS_LIMITED", "tool results", planned.results.before, planned.results.after)
    if planned.history:
        # What a limit cuts from a conversation with a summary is in no summary.
        level: Level = "warning" if planned.summarized else "info"
        history = planned.history
        yield _limit("dropped", "HISTORY_LIMITED", "history messages", history.before, history.after, level)


def _limit(action: Action, rule: NoticeRule, what: str, before: int, after: int, level: Level = "info") -> Notice:
    return Notice("trim", action, rule, f"Limiting {what} from {before} to {after}", level=level)


def _range_notices(turns: Sequence[Turn], fates: Sequence[Fate]) -> Iterator[Notice]:
    """Yields notices with the range of removed messages. (The oldest results go first, so their range has no gaps.)"""
    for dropped, run in groupby(range(len(turns)), key=lambda n: fates[n] == "drop"):
        if dropped:
            positions = list(run)
            yield _range(
                turns, positions[0], positions[-1], "dropped", "MESSAGES_DROPPED", "messages {} to {} were dropped"
            )
    if elided := [n for n, fate in enumerate(fates) if fate == "elide"]:
        detail = "the results in messages {} to {} were elided"
        yield _range(turns, elided[0], elided[-1], "shortened", "TOOL_RESULTS_ELIDED", detail)


def _range(turns: Sequence[Turn], first: int, last: int, action: Action, rule: NoticeRule, detail: str) -> Notice:
    start = index_of(turns, first)
    return Notice("trim", action, rule, detail.format(start, index_of(turns, last)), index=start, level="debug")


def _beyond_notice(planned: Plan, policy: Policy) -> Iterator[Notice]:
    if planned.beyond:
        kept = "1 pinned user message is" if planned.beyond == 1 else f"{planned.beyond} pinned user messages are"
        detail = f"{kept} kept beyond the limit of {policy.max_history_messages} history messages"
        yield Notice("trim", "seen", "USER_TURNS_PINNED", detail)


def _opening_notice(turns: Sequence[Turn], planned: Plan) -> Iterator[Notice]:
    if planned.opening is not None:
        index = index_of(turns, planned.opening)
        detail = f"message {index} is kept beyond the limit: the provider requires a user message first"
        yield Notice("trim", "seen", "USER_TURN_KEPT", detail, index=index, level="debug")


def _prefix_notice(turns: Sequence[Turn], planned: Plan, policy: Policy) -> Iterator[Notice]:
    """Compares the kept prefix with the previous request's, which ended where the model's newest turn begins."""
    newest = next((n for n in range(len(turns) - 1, -1, -1) if turns[n].role == "assistant"), 0)
    known = None if planned.groups is None else groups_before(planned.groups, turns, newest)
    before = plan(turns[:newest], policy, known).fates
    broken = next((n for n in range(newest) if before[n] != planned.fates[n]), None)
    if broken is not None:
        index = index_of(turns, broken)
        detail = f"the kept prefix changed at message {index}: a backend's prompt cache ends there"
        yield Notice("trim", "seen", "PREFIX_CHANGED", detail, index=index)
