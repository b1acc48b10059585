"""The one way in which the steps of a fit report what they changed."""

from gateway.notices import Action, Level, Notice
from gateway.types import Turn


def changed(
    turn: Turn,
    rule: str,
    detail: str,
    *,
    action: Action = "changed",
    call_id: str | None = None,
    level: Level = "debug",
) -> Notice:
    """A notice of the profile stage about one turn."""
    return Notice("profile", action, rule, detail, turn.index, call_id, level)
