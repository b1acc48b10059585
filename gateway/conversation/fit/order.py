"""The order of roles: strict alternation, and an assistant turn between results and the next question."""

from typing import Final

import msgspec

from gateway.conversation.fit.changes import changed
from gateway.notices import Notice
from gateway.profiles import Profile
from gateway.types import Text, Turn

BRIDGE: Final = "I have the tool results."


def bridge_after_tools(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Put a fixed assistant turn between tool results and a user turn."""
    if profile.user_after_tool == "allow":
        return turns
    fitted: list[Turn] = []
    for turn in turns:
        if turn.role == "user" and fitted and fitted[-1].role == "tool":
            notices.append(
                changed(turn, "BRIDGE_ADDED", "assistant message put between tool results and user", action="added")
            )
            fitted.append(Turn("assistant", (Text(BRIDGE),)))
        fitted.append(turn)
    return tuple(fitted)


def merge_neighbours(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Join neighbouring turns of one role. An assistant turn with calls is never joined to a later one."""
    if profile.alternation == "free":
        return turns
    fitted: list[Turn] = []
    for turn in turns:
        before = fitted[-1] if fitted else None
        if before is not None and turn.role == before.role and turn.role in ("user", "assistant") and not before.calls:
            unsaid = "" if turn.name in (None, before.name) else "; its name is not sent"
            notices.append(changed(turn, "TURNS_MERGED", f"joined to the {turn.role} message before it{unsaid}"))
            fitted[-1] = msgspec.structs.replace(
                before,
                blocks=before.blocks + turn.blocks,
                extra={**turn.extra, **before.extra},
                source=None,
                synthesized=before.synthesized and turn.synthesized,
            )
        else:
            fitted.append(turn)
    return tuple(fitted)
