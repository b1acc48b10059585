"""Processes have names that die with them."""

import os
import subprocess
import sys

import pytest

from gateway.server.holder import holder_name, lives

OURS = holder_name(os.getpid())
PARENT = holder_name(os.getppid())


def test_the_living_live() -> None:
    assert lives(OURS) and lives(PARENT)
    assert OURS != PARENT


def test_the_dead_do_not_whether_waited_for_or_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = holder_name(process.pid)
    assert lives(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not lives(name)
    process.communicate()
    assert not lives(name)


@pytest.mark.parametrize(
    ("name", "alive"),
    [(f"{os.getpid()}:1", False), (f"{os.getpid()}:0", True), ("1:0", True), (f"{2**22 + 1}:0", False)],
    ids=["another time", "no time", "the first", "nobody"],
)
def test_a_number_that_was_given_out_again_is_somebody_else(name: str, alive: bool) -> None:
    """With 0 for the time of its start nothing but the number is known."""
    assert lives(name) == alive
