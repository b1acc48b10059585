"""Detects a model that repeats one call with one result, and intervenes if the policy says so."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.notices import Notice
from gateway.core.policy import LoopGuard

NUDGE: Final = (
    "You have called {name} {times} times with the same arguments and got the same result each time. "
    "Do not call it again in the same way; answer with what you have, or try something else."
)

# The name, the arguments and the result of each call of a turn.
_Round: TypeAlias = tuple[tuple[str, str, str], ...]


def guard_loop(conversation: Conversation, options: LoopGuard) -> tuple[Conversation, list[Notice]]:
    """Checks the end of the conversation for a repeated (name, arguments, result).

    Acts as `options.action` says when one such triple stands there at least `options.repeats` times in a row.
    """
    if options.repeats <= 0:
        return conversation, []
    name, times = _repeats(conversation.turns)
    if times < options.repeats:
        return conversation, []
    notices = [
        Notice(
            "guard",
            "seen",
            "LOOP_SEEN",
            f"{name} was called {times} times in a row with the same arguments and result",
            level="warning",
        )
    ]
    if options.action == "nudge":
        nudge = Turn("user", (Text(NUDGE.format(name=name, times=times)),))
        conversation = msgspec.structs.replace(conversation, turns=(*conversation.turns, nudge))
        notices.append(Notice("guard", "added", "LOOP_NUDGED", "a user message asks the model not to repeat the call"))
    elif options.action == "no_tools":
        conversation = msgspec.structs.replace(conversation, tool_choice="none")
        notices.append(Notice("guard", "changed", "LOOP_TOOLS_OFF", "tool calls are disabled for this response"))
    return conversation, notices


def _round(turn: Turn, results: Mapping[str, str]) -> _Round:
    return tuple((call.name, call.arguments, results.get(call.id, "")) for call in turn.calls)


def _repeats(turns: Sequence[Turn]) -> tuple[str, int]:
    """Returns the tool of the round that ends the conversation, and the number of equal rounds in a row."""
    results: dict[str, str] = {}
    first: _Round | None = None
    times = 0
    for turn in reversed(turns):
        if turn.role == "tool":
            results.update((result.call_id, result.text) for result in turn.results)
        elif turn.calls:
            round_ = _round(turn, results)
            results.clear()
            if first is not None and round_ != first:
                break
            first, times = round_, times + 1
        else:
            break
    return (first[0][0], times) if first else ("", 0)


def nudged_before(turns: Sequence[Turn], options: LoopGuard) -> Iterator[int]:
    """Yields the positions of the turns of the assistant at which a request ended that the guard has acted on."""
    if options.repeats <= 0:
        return
    called: Turn | None = None
    results: dict[str, str] = {}
    last: _Round | None = None
    times = 0
    for position, turn in enumerate(turns):
        if turn.role == "tool":
            for result in turn.results:
                results.setdefault(result.call_id, result.text)
            continue
        round_ = None if called is None else _round(called, results)
        times = 0 if round_ is None else times + 1 if round_ == last else 1
        if turn.role == "assistant" and times >= options.repeats:
            yield position
        called, results, last = turn if turn.calls else None, {}, round_
