"""Tests that the identity of a process ends with the process."""

import os
import subprocess
import sys

import pytest

from gateway.server.state.process_identity import is_alive, process_identity

OURS = process_identity(os.getpid())
PARENT = process_identity(os.getppid())


def test_the_living_live() -> None:
    assert is_alive(OURS) and is_alive(PARENT)
    assert OURS != PARENT


def test_the_dead_do_not_whether_waited_for_or_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = process_identity(process.pid)
    assert is_alive(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(name)
    process.communicate()
    assert not is_alive(name)


@pytest.mark.parametrize(
    ("name", "alive"),
    [(f"{os.getpid()}:1", False), (f"{os.getpid()}:0", True), ("1:0", True), (f"{2**22 + 1}:0", False)],
    ids=["another time", "no time", "the first", "nobody"],
)
def test_a_number_that_was_given_out_again_is_somebody_else(name: str, alive: bool) -> None:
    """With 0 for the time of its start nothing but the number is known."""
    assert is_alive(name) == alive
