"""Counts the page faults of a process whose allocator keeps what it has freed, and of one whose allocator does not."""

import os
import platform
import subprocess
import sys

import pytest

from gateway.server.process.malloc import KEPT

PROGRAM = f"""
import resource
from gateway.server.process.malloc import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        pieces = [bytes(3000) for _ in range({KEPT // 2 // 3000})]
        del pieces
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = faults()
keep_freed_memory()
faults()
print(first, faults())
"""


def counted(**environ: str) -> tuple[int, int]:
    """Returns the page faults before and after the call."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env={**others, **environ}, capture_output=True, check=True)
    before, after = map(int, run.stdout.split())
    return before, after


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_memory_that_is_freed_serves_again() -> None:
    before, after = counted()
    assert after < before / 10


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_the_environment_decides() -> None:
    before, after = counted(MALLOC_TRIM_THRESHOLD_="100000")
    assert after > before / 2
