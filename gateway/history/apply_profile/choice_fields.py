"""Drops a choice's fields that a client sent back inside its message, where the provider refuses them."""

from typing import Final

import msgspec

from gateway.core.conversation import Turn
from gateway.core.notices import Notice
from gateway.history.apply_profile.changes import changed
from gateway.providers.profile import Profile

CHOICE_FIELDS: Final = frozenset({"finish_reason", "index", "logprobs"})


def fit_choice_fields(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Returns assistant turns without these fields; the `index` that stream deltas give to calls is one of them."""
    if profile.choice_fields == "keep":
        return turns
    return tuple(_without(turn, notices) if turn.role == "assistant" else turn for turn in turns)


def _without(turn: Turn, notices: list[Notice]) -> Turn:
    carried = CHOICE_FIELDS & {*turn.extra, *(() if turn.source is None else turn.source.unread)}
    if not carried:
        return turn
    names = ", ".join(sorted(carried))
    notices.append(changed(turn, "CHOICE_FIELDS_DROPPED", f"{names} of an earlier response not sent", action="dropped"))
    extra = {key: value for key, value in turn.extra.items() if key not in carried}
    return msgspec.structs.replace(turn, extra=extra, source=None)
