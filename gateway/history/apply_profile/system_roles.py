"""Writes system text with the role and at the position that the provider accepts."""

from itertools import takewhile

import msgspec

from gateway.core.conversation import Text, Turn
from gateway.core.notices import Notice
from gateway.history.apply_profile.changes import changed
from gateway.history.classify import is_system
from gateway.providers.profile import Profile


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
