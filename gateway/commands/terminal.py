"""Words counts and sizes for a person at the terminal, and asks for a yes or no."""

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
