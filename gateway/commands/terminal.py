"""Words counts and sizes for a person at the terminal, lays out rows, and asks for a yes or no."""

from collections.abc import Sequence
from typing import Final

_PLURALS: Final = {"try": "tries"}


def counted(count: int, noun: str) -> str:
    """Returns `1 request`, `2,000 requests`."""
    return f"{count:,} {noun if count == 1 else _PLURALS.get(noun, f'{noun}s')}"


def sized(size: int) -> str:
    """Returns `812 bytes`, `2,000 KB`."""
    return f"{size} bytes" if size < 10_000 else f"{size // 1000:,} KB"


def is_agreed(question: str, default: bool = False) -> bool:
    """Returns whether the answer is yes; `default` for an empty line, and False where the input ends."""
    try:
        said = input(f"{question} [{'Y/n' if default else 'y/N'}] ").strip().lower()
    except EOFError:
        print()
        return False
    return said in ("y", "yes") or (default and not said)


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Returns rows as lines, with their cells one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
