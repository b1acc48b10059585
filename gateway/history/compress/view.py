"""Finds the view of a request, which is what it sends: the system text, the summary that applies, and which turns."""

from collections.abc import Sequence

from gateway.core.conversation import Conversation, Turn
from gateway.core.tokens import estimate_text, estimate_tools
from gateway.history.classify import is_system
from gateway.history.compress.chain import system_run
from gateway.history.compress.summary_record import SummaryRecord
from gateway.history.pinned import pinned_turns


def repeated_turns(turns: Sequence[Turn], behind: int) -> tuple[int, ...]:
    """Returns the positions of the turns before `behind` that follow their summary once more, in order: the pinned
    turns of the running loop. An agent may work for long on one question, and a client writes notes of its own in the
    user's role meanwhile."""
    start = system_run(turns)
    return tuple([position for position in pinned_turns(turns).of_loop if start <= position < behind])


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
