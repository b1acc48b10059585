"""The runtime directory is removed by the last process of a run, or by the next run."""

import copy
import os
from pathlib import Path

from gateway.server.process.runtime_directory import RuntimeDirectory


def inherited(folder: RuntimeDirectory) -> RuntimeDirectory:
    """The folder as a worker has it: fork gives a process its own descriptors of what is open in common."""
    assert folder._lock is not None
    worker = copy.copy(folder)
    worker._lock = os.dup(folder._lock)
    return worker


def killed(folder: RuntimeDirectory) -> None:
    """What the kernel does with the descriptors of a process that ends."""
    assert folder._lock is not None
    os.close(folder._lock)


def test_the_last_one_takes_it_away(tmp_path: Path) -> None:
    supervisor = RuntimeDirectory(tmp_path)
    assert supervisor.path.stat().st_mode & 0o777 == 0o700
    (supervisor.path / "1.live").write_text("x")
    first, second = inherited(supervisor), inherited(supervisor)
    first.release()
    killed(supervisor)
    assert supervisor.path.exists()
    second.release()
    assert list(tmp_path.iterdir()) == []
    second.release()


def test_what_killed_runs_have_left_goes_and_nothing_else(tmp_path: Path) -> None:
    lost, used = RuntimeDirectory(tmp_path), RuntimeDirectory(tmp_path)
    (lost.path / "limits.db").write_text("x")
    worker = inherited(lost)
    killed(lost)
    others = {"dragoman-run-file", "dragoman-run-link", "dragoman-other"}
    (tmp_path / "dragoman-run-file").write_text("")
    (tmp_path / "dragoman-run-link").symlink_to(used.path)
    (tmp_path / "dragoman-other").mkdir()
    while_a_worker_lives = RuntimeDirectory(tmp_path)
    assert lost.path.exists()
    killed(worker)
    later = RuntimeDirectory(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == others | {folder.path.name for folder in (used, while_a_worker_lives, later)}
    for folder in (used, while_a_worker_lives, later):
        folder.release()
