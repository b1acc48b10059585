"""Writes system text with the role and at the position that the provider accepts."""

import msgspec

from gateway.core.conversation import Text, Turn
from gateway.core.notices import Notice
from gateway.core.profiles import Profile
from gateway.history.apply_profile.changes import changed


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
    """Moves every system turn into the leading one: as user text it would lose its authority."""
    systems = [turn for turn in turns if turn.role in ("system", "developer")]
    if profile.system == "anywhere" or not systems or (len(systems) == 1 and turns[0] is systems[0]):
        return turns
    leading = systems[0]
    notices.extend(_moved_notice(turn, leading) for turn in (systems[1:] if turns[0] is leading else systems))
    text = "\n\n".join(turn.text for turn in systems if turn.text)
    others = [block for turn in systems for block in turn.blocks if not isinstance(block, Text)]
    extra = {key: value for turn in reversed(systems) for key, value in turn.extra.items()}
    blocks = (Text(text), *others) if text or not others else others
    joined = msgspec.structs.replace(leading.changed(*blocks), extra=extra)
    return (joined, *(turn for turn in turns if turn.role not in ("system", "developer")))


def _moved_notice(turn: Turn, leading: Turn) -> Notice:
    unsaid = "" if turn.name in (None, leading.name) else "; its name is not sent"
    detail = f"system message moved to the front{unsaid}"
    return changed(turn, "SYSTEM_FOLDED", detail, action="moved", level="info")
