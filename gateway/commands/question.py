"""Asks the person at the terminal a question with the answer yes or no."""


def is_agreed(question: str, default: bool = False) -> bool:
    """Returns whether the answer is yes; `default` for an empty line, and False where the input ends."""
    try:
        said = input(f"{question} [{'Y/n' if default else 'y/N'}] ").strip().lower()
    except EOFError:
        print()
        return False
    return said in ("y", "yes") or (default and not said)
