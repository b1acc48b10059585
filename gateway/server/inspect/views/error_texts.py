"""Gives the row of docs/errors.md about a code, which the package holds without the page."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec


class ErrorText(msgspec.Struct, frozen=True):
    """Why the gateway answers with a code, and what to do about it."""

    cause: str = ""
    remedy: str = ""


def error_text(code: str) -> ErrorText:
    """Returns the text about a code; an empty one for a code that is the backend's own."""
    return _texts().get(code, ErrorText())


@cache
def _texts() -> Mapping[str, ErrorText]:
    content = (files("gateway.server.inspect.views") / "error_texts.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, ErrorText])
