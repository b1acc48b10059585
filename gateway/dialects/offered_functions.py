"""Checks the functions that a request offers, and reports those that it declares and does not allow: they are left
out, which has the same effect."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.core.conversation import ToolSpec
from gateway.core.notices import Notice
from gateway.dialects.faults import Faults

MAX_TOOLS: Final = 128
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tools(specs: Sequence[ToolSpec], places: Sequence[str], faults: Faults) -> None:
    """Checks the functions, whose names the client knows by these places. Faults: TOOLS_COUNT, TOOLS_NAME."""
    if len(specs) > MAX_TOOLS:
        detail = f"{len(specs)} functions are in the request, more than {MAX_TOOLS}"
        faults.add("TOOLS_COUNT", -1, places[0].partition("[")[0], detail)
    for spec, place in zip(specs, places, strict=True):
        if not _NAME.fullmatch(spec.name):
            faults.add("TOOLS_NAME", -1, place)


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
