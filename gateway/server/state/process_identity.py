"""Names a process uniquely across time, and reports whether the process of a name is alive.

A process id alone does not suffice: the kernel reuses it. Together with the start time of the process it is unique.
"""

import os
from pathlib import Path


def process_identity(pid: int) -> str:
    """Returns `PID:START`, START in the kernel's ticks since it booted; 0 where there is no /proc, or no such
    process."""
    return f"{pid}:{_start(pid) or 0}"


def is_alive(name: str) -> bool:
    """Returns whether the process of this name is running; a zombie process is not. On Windows, which
    cannot be asked so, every process counts as running."""
    number, _, start = name.partition(":")
    pid = int(number)
    if start != "0":
        return _start(pid) == int(start)
    # On Windows, os.kill would end the process, or interrupt its group.
    if not hasattr(os, "fork"):
        return True
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
    # The name of the program, in brackets, may contain any character, brackets too.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
