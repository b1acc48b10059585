"""Words a count, as commands print it."""

from typing import Final

_PLURALS: Final = {"try": "tries"}


def counted(count: int, noun: str) -> str:
    """Returns `1 request`, `2,000 requests`."""
    return f"{count:,} {noun if count == 1 else _PLURALS.get(noun, f'{noun}s')}"
