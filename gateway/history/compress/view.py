"""Finds the view of a request, which is what it sends: the system text, the summary that applies, and which turns."""

from collections.abc import Sequence

from gateway.core.conversation import Conversation, Turn
from gateway.core.tokens import estimate_text, estimate_tools
from gateway.history.classify import classify, is_system
from gateway.history.compress.chain import system_run
from gateway.history.compress.summary_record import SummaryRecord


def repeated_turns(turns: Sequence[Turn], behind: int) -> tuple[int, ...]:
    """Returns the positions of the turns before `behind` that follow their summary once more, in order: the user's turn
    that opened the running loop, and the user's last one. An agent may work for long on one question, and a client
    writes notes of its own in the user's role meanwhile."""
    found = {opening_turn(turns), classify(turns).last_user}
    start = system_run(turns)
    return tuple(sorted(position for position in found if position is not None and start <= position < behind))


def opening_turn(turns: Sequence[Turn]) -> int | None:
    """Returns the position of the user's turn that opened the running loop: the last one that follows an answer without
    calls, or the beginning."""
    opening: int | None = None
    for position in range(len(turns) - 1, -1, -1):
        turn = turns[position]
        if turn.role == "user" and not turn.synthesized:
            opening = position if opening is None else opening
        elif turn.role == "tool" or turn.calls:
            # What the user said after this one was said while the agent worked.
            opening = None
        elif turn.role == "assistant" and opening is not None:
            return opening
    return opening


def running_round(turns: Sequence[Turn]) -> int:
    """Returns the position of the first turn that the model has not answered: a turn with calls and all behind it, or
    what follows an answer without calls. Where nothing follows, it is the model's own last turn."""
    last = next((n for n in range(len(turns) - 1, -1, -1) if turns[n].role == "assistant"), None)
    if last is None:
        return 0
    if turns[last].calls or all(map(is_system, turns[last + 1 :])):
        return last
    return last + 1


def view_tokens(conversation: Conversation, sizes: Sequence[int], applied: SummaryRecord | None = None) -> int:
    """Returns the estimated size of what a request with this summary sends, before calibration. `sizes` are the
    estimates of the turns; those of turns that are not sent do not count."""
    turns = conversation.turns
    start = system_run(turns)
    behind = start if applied is None else start + applied.turns
    total = estimate_tools(conversation.tools) + sum(sizes[:start]) + sum(sizes[behind:])
    if applied is None:
        return total
    return total + estimate_text(applied.text) + sum(sizes[position] for position in repeated_turns(turns, behind))
