"""Builds the notices by which the steps of a profile report their changes."""

from gateway.core.conversation import Turn
from gateway.core.notices import Action, Level, Notice, NoticeRule


def changed(
    turn: Turn,
    rule: NoticeRule,
    detail: str,
    *,
    action: Action = "changed",
    call_id: str | None = None,
    level: Level = "debug",
) -> Notice:
    """Returns a notice of the profile stage about one turn."""
    return Notice("profile", action, rule, detail, index=turn.index, tool_call_id=call_id, level=level)
