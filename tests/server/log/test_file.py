"""One log file for several writers."""

import logging
import os
from pathlib import Path

from gateway.server.log.file import SharedFile


def writer(path: Path, size: int = 1000) -> SharedFile:
    return SharedFile(path, size, 50)


def line(text: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": text})


def test_no_line_is_lost_and_no_file_rotated_twice(tmp_path: Path) -> None:
    path = tmp_path / "gateway.log"
    first, second = writer(path), writer(path)
    for number in range(200):
        (first if number % 3 else second).handle(line(f"line {number:03d} {'x' * 50}"))
    first.close()
    second.close()
    files = sorted(tmp_path.iterdir())
    lines = sorted(text for file in files for text in file.read_text().splitlines())
    assert [text[:8] for text in lines] == [f"line {number:03d}" for number in range(200)]
    assert all(file.stat().st_size > 900 for file in files if file != path)


def test_processes_share_it(tmp_path: Path) -> None:
    path = tmp_path / "gateway.log"
    pids = []
    for process in range(3):
        pid = os.fork()
        if pid == 0:
            mine = writer(path, 5000)
            for number in range(300):
                mine.handle(line(f"{process} {number:03d} {'x' * 40}"))
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    lines = sorted(text[:5] for file in tmp_path.iterdir() for text in file.read_text().splitlines())
    assert lines == [f"{process} {number:03d}" for process in range(3) for number in range(300)]


def test_a_file_that_was_moved_away_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "gateway.log"
    log = writer(path)
    log.handle(line("one"))
    path.rename(tmp_path / "moved")
    log.handle(line("two"))
    log.close()
    assert (tmp_path / "moved").read_text() == "one\n"
    assert path.read_text() == "two\n"
