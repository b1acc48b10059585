"""System text as the provider takes it: by which role, and where."""

import msgspec

from gateway.conversation.fit.changes import changed
from gateway.notices import Notice
from gateway.profiles import Profile
from gateway.types import Text, Turn


def fit_developer(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """`developer` becomes `system` where the newer role is unknown."""
    if profile.developer == "developer":
        return turns
    fitted: list[Turn] = []
    for turn in turns:
        if turn.role == "developer":
            notices.append(changed(turn, "ROLE_RENAMED", "developer message sent as system"))
            turn = msgspec.structs.replace(turn, role="system", source=None)
        fitted.append(turn)
    return tuple(fitted)


def fold_system(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Every system turn becomes part of the leading one: as user text it would lose its authority."""
    systems = [turn for turn in turns if turn.role in ("system", "developer")]
    if profile.system == "anywhere" or not systems or (len(systems) == 1 and turns[0] is systems[0]):
        return turns
    notices.extend(
        changed(turn, "SYSTEM_FOLDED", "system message moved to the front", action="moved", level="info")
        for turn in (systems[1:] if turns[0] is systems[0] else systems)
    )
    text = "\n\n".join(turn.text for turn in systems if turn.text)
    leading = systems[0].changed(Text(text))
    return (leading, *(turn for turn in turns if turn.role not in ("system", "developer")))
