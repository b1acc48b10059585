"""Finds the marker in a text that controls the backend: `[[demo:NAME k=v ...]]`, `[[scenario:NAME k=v ...]]`."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

_MARKER: Final = re.compile(r"\s*\[\[(demo|scenario):([\w-]*)((?:[\s;,&]+[\w-]+(?:=[^\s;,&\]]*)?)*)\s*\]\]")
_SEPARATORS: Final = re.compile(r"[\s;,&]+")


class Marker(msgspec.Struct, frozen=True):
    """`kind` is `demo` or `scenario`; `options` holds its k=v parts, a bare k being `1`."""

    kind: str
    name: str
    options: Mapping[str, str]


def find_marker(text: str, kind: str) -> Marker | None:
    """Returns the last marker of a kind, because a newer marker replaces an older one."""
    found = [match for match in _MARKER.finditer(text) if match.group(1) == kind]
    return Marker(kind, found[-1].group(2).replace("-", "_"), read_options(found[-1].group(3))) if found else None


def without_markers(text: str) -> str:
    """Removes the markers from the text for the model."""
    return _MARKER.sub("", text)


def read_options(text: str) -> dict[str, str]:
    """Parses `a=1 b;c=x` as a mapping."""
    pairs = (part.partition("=") for part in _SEPARATORS.split(text) if part)
    return {name: value if equals else "1" for name, equals, value in pairs}
