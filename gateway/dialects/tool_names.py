"""Checks the number and the names of the functions that a request offers."""

import re
from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import ToolSpec
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
