"""Words a count or a size, as commands print it."""

from typing import Final

_PLURALS: Final = {"try": "tries"}


def counted(count: int, noun: str) -> str:
    """Returns `1 request`, `2,000 requests`."""
    return f"{count:,} {noun if count == 1 else _PLURALS.get(noun, f'{noun}s')}"


def sized(size: int) -> str:
    """Returns `812 bytes`, `2,000 KB`."""
    return f"{size} bytes" if size < 10_000 else f"{size // 1000:,} KB"
