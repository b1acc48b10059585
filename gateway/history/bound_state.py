"""Leaves out signed thinking whose prefix has changed since its provider made it.

A provider may bind thinking to all that stood before it: the system prompt, the tools, the messages (Anthropic,
"Preserved thinking": "nothing before the thinking block has changed"; the thinking before it is no part of that). A
block is therefore sent only if the backend now receives before it what it received then. No store is needed for that:
what it received is the plan of the messages before the block, made as a request of its own, since a plan is
deterministic.

No such plan is made for each block. Most passes change a turn by what stands before it, in every request in the same
way. Of the others it is known from which later turn on their change holds, and a block is left out if it stands behind
the changed place and was made before that turn:

- repair moves a result that arrived late or early: the block was made between the result and its call;
- a limit removes or shortens old turns: the limit has moved since the block was made;
- the nudge of the loop guard was the end of the request that the block answers;
- results are shortened to fit the window, or a summary came: no request says since when, so that every block behind is
  left out (or, of a summary, the API is asked to drop the blocks that do not fit);
- recent results stand in the system prompt, which differs in each request.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Json, Reasoning, Source, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import provider_state, without_state
from gateway.history.groups import groups_before
from gateway.history.loop_guard import nudged_before
from gateway.history.pairing import Pairing, ResultAt, pair
from gateway.history.trim.plan import plan
from gateway.history.trim.truncate import shorten

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


class BoundState(msgspec.Struct, frozen=True):
    """State that is bound to its prefix: that of this provider. `drops`: its API can be asked to drop what does not
    fit."""

    provider: str
    drops: bool = False


class Passes(msgspec.Struct, frozen=True):
    """What the passes made of a request: the turns as the client sent them, with every fault repaired, and with a
    summary in place, before any limit. `limited`: a limit has removed or shortened some of these. `system_grows`:
    recent results stand in the system prompt."""

    received: Sequence[Turn]
    repaired: Sequence[Turn]
    substituted: Sequence[Turn]
    limited: bool = False
    system_grows: bool = False


def with_bound_state(
    conversation: Conversation, passes: Passes, policy: Policy, bound: BoundState
) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation as it is sent without the signed thinking whose prefix has changed, and the notice. Its
    work grows with the length of the conversation, whatever the number of blocks."""
    same = passes.substituted is passes.repaired and passes.repaired is passes.received
    if same and not (passes.limited or passes.system_grows or policy.loop_guard.action == "nudge"):
        return conversation, []
    turns = conversation.turns
    signed = [at for at, turn in enumerate(turns) if _is_signed(turn, bound.provider)]
    if not signed:
        return conversation, []
    lost = {turns[at].index for at in signed} & {*_lost(passes, policy, bound)}
    if not lost:
        return conversation, []
    kept: list[Turn] = []
    for turn in turns:
        if turn.index in lost and _is_signed(turn, bound.provider):
            without = _without_thinking(turn, bound.provider)
            kept += [] if without is None else [without]
        else:
            kept.append(turn)
    detail = f"signed thinking of {len(lost)} messages is not sent: what stands before it has changed since it was made"
    first = next(turn.index for turn in turns if turn.index in lost)
    notice = Notice("state", "dropped", "STATE_PREFIX_CHANGED", detail, index=first)
    return msgspec.structs.replace(conversation, turns=tuple(kept)), [notice]


def _is_signed(turn: Turn, provider: str) -> bool:
    if turn.role != "assistant":
        return False
    if turn.extra and provider_state(turn.extra, provider):
        return True
    return any([type(block) is Reasoning and provider_state(block.extra, provider) for block in turn.blocks])


def _lost(passes: Passes, policy: Policy, bound: BoundState) -> Iterator[int | None]:
    """Yields the index of each turn of the assistant whose prefix has changed."""
    if passes.system_grows:
        yield from _answers(passes.received)
    if passes.repaired is not passes.received:
        yield from _between(_answers(passes.received), [*_moved(pair(passes.received))])
        yield from _parted(passes)
    if policy.loop_guard.action == "nudge":
        nudged = {*nudged_before(passes.repaired, policy.loop_guard)}
        yield from [index for index, start in _answers(passes.repaired).items() if start in nudged]
    if passes.substituted is not passes.repaired and not (bound.drops and _has_summary(passes.substituted)):
        pairs = zip(passes.repaired, passes.substituted, strict=False)
        first = next((at for at, (old, new) in enumerate(pairs) if old is not new), 0)
        yield from _between(_answers(passes.substituted), [_Change(first, len(passes.substituted))])
    if passes.limited:
        yield from _limited(passes.substituted, policy)


def _has_summary(turns: Sequence[Turn]) -> bool:
    return any(turn.summary for turn in turns)


def _answers(turns: Sequence[Turn]) -> dict[int | None, int]:
    """Returns the number of turns before the answer that each turn of the assistant is a part of, by its index."""
    found: dict[int | None, int] = {}
    start = 0
    for at, turn in enumerate(turns):
        if turn.role != "assistant":
            start = at + 1
        elif turn.index is not None:
            found[turn.index] = start
    return found


def _parted(passes: Passes) -> Iterator[int | None]:
    """Yields the answers that repair has parted from the message of the assistant before them, by a result."""
    begun = _firsts(passes.received)
    yield from [index for index, first in _firsts(passes.repaired).items() if begun.get(index, first) != first]


def _firsts(turns: Sequence[Turn]) -> dict[int | None, int | None]:
    """Returns the index of the first message of the answer that each turn of the assistant is a part of, by its own."""
    return {index: turns[start].index for index, start in _answers(turns).items()}


class _Change(msgspec.Struct, frozen=True):
    """A change of the turn at `place` that each request has which holds more than `until` turns."""

    place: int
    until: int


def _between(answers: Mapping[int | None, int], changes: Sequence[_Change]) -> Iterator[int | None]:
    """Yields the answers that stand behind the place of a change and were made before it."""
    if changes:
        for index, start in answers.items():
            if any(change.place < start <= change.until for change in changes):
                yield index


def _moved(pairing: Pairing) -> Iterator[_Change]:
    """Yields the changes by results that do not stand in the run behind their call.

    An early result that no call has in the end may have had one until another call or result of its id came.
    """
    last: dict[str, int] = {}
    called: set[str] = set()
    for at, calls in pairing.calls.items():
        last.update({call.id: at for call in calls})
        called.update([call.id for call in calls])
    for at, results in pairing.results.items():
        last.update({result.call_id: max(at, last.get(result.call_id, at)) for result in results})
    for at, results in pairing.results.items():
        for ordinal, result in enumerate(results):
            call = pairing.answered.get(ResultAt(at, ordinal))
            if call is not None and pairing.caller(at) != call.turn:
                yield _Change(min(at, call.turn), max(at, call.turn))
            elif call is None and result.call_id in called:
                yield _Change(at, last[result.call_id])


def _limited(turns: Sequence[Turn], policy: Policy) -> Iterator[int | None]:
    """Yields the answers behind a turn that the limits remove or shorten and that they left whole when the answer came.

    Those before the last such turn are among them. Of the others the first one is looked for that came when the limits
    had reached that turn, from the end: the limits move in steps (`trim_step`), so that the number of plans does not
    grow with the conversation.
    """
    turns, _ = shorten(tuple(turns), policy.max_tool_result_chars)
    planned = plan(turns, policy)
    fates = planned.fates
    cut = [at for at, fate in enumerate(fates) if fate != "keep"]
    if not cut:
        return
    answers = {index: start for index, start in _answers(turns).items() if start > cut[0]}
    starts = sorted({start for start in answers.values() if start > cut[-1]})

    def holds(which: int) -> bool:
        end = starts[which]
        known = None if planned.groups is None else groups_before(planned.groups, turns, end)
        return plan(turns[:end], policy, known).fates == fates[:end]

    held = _first_that(holds, len(starts), policy.trim_step)
    since = starts[held] if held < len(starts) else len(turns)
    yield from [index for index, start in answers.items() if start < since]


def _first_that(holds: Callable[[int], bool], count: int, step: int) -> int:
    """Returns the first of so many numbers from which on it holds, `count` where it holds for none. Within `step` of
    the end, it is found by few questions."""
    held, failed = count, count - step
    while failed >= 0 and holds(failed):
        held, step = failed, 2 * step
        failed -= step
    failed = max(failed, -1)
    while held - failed > 1:
        middle = (held + failed) // 2
        if holds(middle):
            held = middle
        else:
            failed = middle
    return held


def _without_thinking(turn: Turn, provider: str) -> Turn | None:
    """Returns the turn without its signed thinking; None where nothing is left of it."""
    blocks = tuple(
        [block for block in turn.blocks if not (type(block) is Reasoning and provider_state(block.extra, provider))]
    )
    source = None if turn.source is None else _without_blocks(turn.source)
    if not blocks and source is None:
        return None
    return msgspec.structs.replace(turn, blocks=blocks, extra=without_state(turn.extra, provider), source=source)


def _without_blocks(source: Source) -> Source | None:
    """Returns a message of the provider's own API without its blocks of thinking; None where it has no other."""
    content = source.value.get("content")
    if not isinstance(content, list):
        return None
    kept: list[Json] = [one for one in content if not (isinstance(one, dict) and one.get("type") in _THINKING)]
    return Source(source.dialect, {**source.value, "content": kept}, source.listed, source.unread) if kept else None
