"""Reports the functions that a client declares and does not allow: they are left out, which has the same effect."""

from collections.abc import Iterable
from typing import Final

from gateway.core.conversation import ToolSpec
from gateway.core.notices import Notice

_SHOWN_NAMES: Final = 3


def not_allowed(declared: Iterable[str], offered: Iterable[ToolSpec], place: str) -> tuple[Notice, ...]:
    """Returns the notice of the functions that are `declared` and not `offered`, because the field at this place does
    not name them; nothing where there are none."""
    kept = {tool.name for tool in offered}
    names = [repr(name[:64]) for name in declared if name not in kept]
    if not names:
        return ()
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    detail = f"the model is not offered {shown}{more}, which {place} does not name"
    return (Notice("decode", "dropped", "TOOL_NOT_ALLOWED", detail, level="debug"),)
