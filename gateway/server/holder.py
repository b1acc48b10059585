"""A process -> a name that no later process will bear, and whether whoever bears a name still lives.

A number alone would not do: the kernel gives it out again. With the time at which the process started it is unique.
"""

import os
from pathlib import Path


def holder_name(pid: int) -> str:
    """`PID:START`, START in the kernel's ticks since it booted; 0 where there is no /proc, or no such process."""
    return f"{pid}:{_start(pid) or 0}"


def lives(name: str) -> bool:
    """Whether the process of this name still runs; one that nobody has waited for yet does not."""
    number, _, start = name.partition(":")
    pid = int(number)
    if start != "0":
        return _start(pid) == int(start)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name of the program, in brackets, may hold anything, brackets too.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
