"""Quotes text in a response so that no client takes it for an edit of its user's files."""

import re
from typing import Final

# The first lines of the edits that clients parse from a response: fenced files, SEARCH/REPLACE blocks, diffs, patches.
_EDIT: Final = re.compile(r"\s*(?:`{3}|~{3}|<{5,}|={5,}|>{5,}|diff |--- |\+\+\+ |@@|\*\*\* )")


def quotation(text: str) -> str:
    """Return the text unchanged, or with every line marked as quoted if it holds a line of an edit."""
    lines = text.splitlines(keepends=True)
    return "".join(f"> {line}" for line in lines) if any(map(_EDIT.match, lines)) else text
