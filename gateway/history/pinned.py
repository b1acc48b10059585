"""Finds the user turns that limits and summaries leave in place, by their position, never by their wording.

The client's place for what a tool showed (a picture, a reminder) is the user's place too, so that the newest user turn
need not be the question. The task stands before the first answer, or opened the loop that is running.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Turn
from gateway.history.classify import classify, is_said_by_user
from gateway.history.pairing import is_calling

# Of a pinned turn that a limit or a summary would have removed, so many characters are kept.
PINNED_CHARS: Final = 8_000

# Why a turn is pinned: it is the newest one of the user, it opened the running loop, or no answer stands before it.
PinReason: TypeAlias = Literal["newest", "opened_loop", "before_first_answer"]


class PinnedTurns(msgspec.Struct, frozen=True):
    """Positions in the classified turns.

    - `reasons`: why each pinned turn is; of several reasons, the first one in the order of `PinReason`.
    - `in_loop`: the user turns of the running loop between its opener and the newest one, in order. They are not
      pinned, but go last.
    """

    reasons: Mapping[int, PinReason]
    in_loop: tuple[int, ...]

    @property
    def of_loop(self) -> tuple[int, ...]:
        """Returns the pinned turns of the running loop, in order: what opened it, and the newest one."""
        return tuple(sorted(at for at, reason in self.reasons.items() if reason != "before_first_answer"))


def pinned_turns(turns: Sequence[Turn]) -> PinnedTurns:
    """Finds the pinned user turns. A blank turn and a note of the gateway are pinned only as the newest one, and only
    where there is no other."""
    newest = classify(turns).last_user
    # A summary stands for answers too.
    answers = (at for at, turn in enumerate(turns) if turn.role == "assistant" or turn.summary)
    first_answer = next(answers, len(turns))
    opener = opening_turns(turns)
    reasons: dict[int, PinReason] = {
        **dict.fromkeys((at for at in range(first_answer) if is_said_by_user(turns[at])), "before_first_answer"),
        **dict.fromkeys(opener, "opened_loop"),
        **({} if newest is None else {newest: "newest"}),
    }
    loop = range(opener[-1] + 1 if opener else 0, newest or 0)
    return PinnedTurns(reasons, tuple([at for at in loop if is_said_by_user(turns[at]) and at not in reasons]))


def opening_turns(turns: Sequence[Turn]) -> tuple[int, ...]:
    """Returns the last user turns that nothing but other user turns and system turns separates from an answer without
    calls, or from the beginning.

    A user turn behind results asks for nothing new: the client shows with it what a tool returned, or the user speaks
    while the loop goes on.
    """
    run: list[int] = []
    for at in range(len(turns) - 1, -1, -1):
        turn = turns[at]
        if turn.role == "user":
            if is_said_by_user(turn):
                run.append(at)
        elif run and turn.role in ("assistant", "tool"):
            if turn.role == "assistant" and not is_calling(turn):
                break
            run = []
    return tuple(reversed(run))
