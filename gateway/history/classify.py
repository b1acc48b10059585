"""Finds where the current exchange begins; returns positions, never copied turns, so that no turn can be lost."""

from collections.abc import Sequence

import msgspec

from gateway.core.conversation import Text, Turn, is_system


class Classification(msgspec.Struct, frozen=True):
    """Positions in the classified turns.

    `system_prefix` counts the leading system (or developer) turns. `last_user` is the last turn with words of the user:
    an empty one and a note of the gateway count only when there is no other. `results_since` are the tool turns after
    it (all of them when there is no user turn); everything before it is history. `awaiting_continuation`: the
    conversation ends with tool results, so the model must continue without a new user turn. This also holds when a
    result came after the model's last words and repair moved it before them, beside its call, or dropped it.
    """

    system_prefix: int
    last_user: int | None
    results_since: tuple[int, ...]
    awaiting_continuation: bool


def is_said_by_user(turn: Turn) -> bool:
    """Returns whether the turn has content of the user: it is no note of the gateway, and not blank."""
    if turn.role != "user" or turn.synthesized:
        return False
    return any([type(block) is not Text or block.text.strip() for block in turn.blocks])


def system_prefix(turns: Sequence[Turn]) -> int:
    """Returns the number of leading system (or developer) turns."""
    return next((n for n, turn in enumerate(turns) if not is_system(turn)), len(turns))


def classify(turns: Sequence[Turn], *, ends_with_result: bool = False) -> Classification:
    """Finds the current exchange. `ends_with_result` as in Conversation.

    Results count from the last user turn, not from the last assistant turn: a loop of several calls has several rounds
    of them. The last turn that is no system turn decides whether the model must continue: a tool result, also one that
    repair kept as a note, or the model's own turn when the client put a result after it. The wording of a turn decides
    nothing.
    """
    last_user = _last_user(turns)
    since = 0 if last_user is None else last_user + 1
    last = next((turn for turn in reversed(turns) if not is_system(turn)), None)
    return Classification(
        system_prefix=system_prefix(turns),
        last_user=last_user,
        results_since=tuple([n for n in range(since, len(turns)) if turns[n].role == "tool"]),
        awaiting_continuation=last is not None
        and (last.role == "tool" or last.synthesized or (last.role == "assistant" and ends_with_result)),
    )


def _last_user(turns: Sequence[Turn]) -> int | None:
    fallback: int | None = None
    for position in range(len(turns) - 1, -1, -1):
        turn = turns[position]
        if turn.role == "user":
            if is_said_by_user(turn):
                return position
            fallback = position if fallback is None else fallback
    return fallback
