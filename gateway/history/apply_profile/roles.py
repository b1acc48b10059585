"""Enforces the roles and their order: system text with the role and at the position that the provider accepts, strict
alternation, and an assistant turn between results and the next question."""

from itertools import takewhile
from typing import Final

import msgspec

from gateway.core.conversation import Json, Text, Turn, is_system
from gateway.core.notices import Notice
from gateway.history.apply_profile.changes import changed
from gateway.history.first_turn import opened, wrong_first_turn
from gateway.providers.profile import Profile

BRIDGE: Final = "I have the tool results."
CONTINUE: Final = "Please continue."


def bridge_after_tools(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Puts a fixed assistant turn between tool results and a user turn, also across system turns between them."""
    if profile.user_after_tool == "allow":
        return turns
    profiled: list[Turn] = []
    before = None
    for turn in turns:
        if turn.role == "user" and before == "tool":
            notices.append(
                changed(
                    turn, "BRIDGE_ADDED", "assistant message inserted between tool results and user", action="added"
                )
            )
            profiled.append(Turn("assistant", (Text(BRIDGE),)))
        before = before if is_system(turn) else turn.role
        profiled.append(turn)
    return tuple(profiled)


def begin_with_user(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Puts a fixed user turn before a first turn that is not the user's, where repair was not allowed to."""
    position = wrong_first_turn(turns, profile)
    if position is None:
        return turns
    detail = f"user message inserted before the first {turns[position].role} message"
    notices.append(changed(turns[position], "USER_TURN_ADDED", detail, action="added"))
    return opened(turns, position)


def end_with_user(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Puts a fixed user turn behind a last turn of the assistant, which the provider takes for an answer to continue.
    A turn with calls is left alone: only its results may follow it."""
    last = next((turn for turn in reversed(turns) if not is_system(turn)), None)
    if profile.last_turn == "any" or last is None or last.role != "assistant" or last.calls:
        return turns
    notices.append(
        changed(last, "USER_TURN_ADDED", "user message put behind the last message, the assistant's", action="added")
    )
    return (*turns, Turn("user", (Text(CONTINUE),), synthesized=True))


def merge_neighbours(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Joins neighbouring turns of one role. An assistant turn with calls is never joined to a later one."""
    if profile.alternation == "free":
        return turns
    profiled: list[Turn] = []
    run: list[Turn] = []
    for turn in turns:
        before = run[-1] if run else None
        if before is not None and turn.role == before.role and turn.role in ("user", "assistant") and not before.calls:
            unsaid = "" if turn.name in (None, run[0].name) else "; its name is not sent"
            notices.append(changed(turn, "TURNS_MERGED", f"merged into the {turn.role} message before it{unsaid}"))
        elif run:
            profiled.append(_joined(run))
            run = []
        run.append(turn)
    return (*profiled, _joined(run)) if run else turns


def _joined(run: list[Turn]) -> Turn:
    """Returns one turn for several of one role. Of a field that several of them have, the first value is kept."""
    if len(run) == 1:
        return run[0]
    extra: dict[str, Json] = {}
    for turn in reversed(run):
        extra.update(turn.extra)
    return msgspec.structs.replace(
        run[0],
        blocks=tuple(block for turn in run for block in turn.blocks),
        extra=extra,
        source=None,
        synthesized=all(turn.synthesized for turn in run),
        summary=False,
    )


def fit_developer(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Replaces `developer` by `system` where the provider lacks the newer role."""
    if profile.developer == "developer":
        return turns
    profiled: list[Turn] = []
    for turn in turns:
        if turn.role == "developer":
            notices.append(changed(turn, "ROLE_RENAMED", "developer message sent as system"))
            turn = msgspec.structs.replace(turn, role="system", source=None)
        profiled.append(turn)
    return tuple(profiled)


def fold_system(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Joins the leading system turns, where only one may be a system message."""
    systems = list(takewhile(is_system, turns))
    if profile.system == "anywhere" or len(systems) < 2:
        return turns
    leading = systems[0]
    notices.extend(_joined_notice(turn, leading) for turn in systems[1:])
    text = "\n\n".join(turn.text for turn in systems if turn.text)
    others = [block for turn in systems for block in turn.blocks if not isinstance(block, Text)]
    extra = {key: value for turn in reversed(systems) for key, value in turn.extra.items()}
    blocks = (Text(text), *others) if text or not others else others
    joined = msgspec.structs.replace(leading.changed(*blocks), extra=extra)
    return (joined, *turns[len(systems) :])


def _joined_notice(turn: Turn, leading: Turn) -> Notice:
    unsaid = "" if turn.name in (None, leading.name) else "; its name is not sent"
    detail = f"system message joined to the first one{unsaid}"
    return changed(turn, "SYSTEM_FOLDED", detail, action="moved", level="info")
