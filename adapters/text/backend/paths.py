"""Looks up the value at a path such as `choices[0].text` in a decoded event."""

import re
from typing import Final, TypeAlias

from gateway.core.conversation import Json

Path: TypeAlias = tuple[str | int, ...]

_STEP: Final = re.compile(r"(?:\A|\.)([^.\[\]]+)|\[(\d{1,4})\]")


def parse_path(written: str) -> Path:
    """Parses the steps of a path; the empty path is the event itself. Raises ValueError for an invalid path."""
    steps: list[str | int] = []
    position = 0
    while position < len(written):
        step = _STEP.match(written, position)
        if step is None:
            raise ValueError(f"{written!r} is not a path; write names and indices like choices[0].text")
        steps.append(int(step[2]) if step[1] is None else step[1])
        position = step.end()
    return tuple(steps)


def look_up(document: Json, path: Path) -> Json:
    """Returns the value at a path, or None when the path does not exist."""
    for step in path:
        if isinstance(step, str):
            document = document.get(step) if isinstance(document, dict) else None
        else:
            document = document[step] if isinstance(document, list) and step < len(document) else None
    return document
