import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.core.errors import InvalidRequest
from gateway.recording.files import RecordingFile, load_recording, save_folder, save_recording, save_text
from gateway.recording.lines import HeaderLine, RecordingError
from tests.recording.samples import golden_recordings


def test_a_file_comes_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.dragoman.jsonl"
    recording = golden_recordings()[0]
    assert save_recording(path, recording) == path.stat().st_size
    assert load_recording(path) == recording
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("mine")
    with pytest.raises(InvalidRequest, match="File exists"):
        save_recording(path, golden_recordings()[0])
    with pytest.raises(InvalidRequest, match="File exists"):
        save_text(path, "x")
    with pytest.raises(InvalidRequest, match="File exists"):
        save_folder(path, {})
    assert path.read_text() == "mine"


def test_requests_are_appended_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    (one,) = golden_recordings()[0].interactions()
    with RecordingFile(path, HeaderLine()) as file:
        file.append(one)
        size = file.size
        monkeypatch.setattr("gateway.recording.files.MAX_FILE", size + 10)
        with pytest.raises(RecordingError, match="larger than"):
            file.append(one.numbered(2))
    assert path.stat().st_size == size
    monkeypatch.undo()
    assert [each.x for each in load_recording(path).interactions()] == [1]


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process grows beyond the size: a write takes a part and the next one fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_request_that_a_full_disk_cuts_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "a"
    (one,) = golden_recordings()[0].interactions()
    with RecordingFile(path, HeaderLine()) as file:
        file.append(one)
        with _files_of_at_most(file.size + 100), pytest.raises(InvalidRequest, match="cannot be written"):
            file.append(one.numbered(2))
        file.append(one.numbered(3))
    assert [each.x for each in load_recording(path).interactions()] == [1, 3]


def test_a_file_that_a_full_disk_cannot_begin_is_not_left(tmp_path: Path) -> None:
    path = tmp_path / "a"
    free = os.dup(0)
    os.close(free)
    with _files_of_at_most(10), pytest.raises(InvalidRequest, match="cannot be written"):
        RecordingFile(path, HeaderLine())
    assert not path.exists()
    after = os.dup(0)
    os.close(after)
    assert after == free, "its descriptor is closed"


def test_what_a_full_disk_cuts_is_not_left(tmp_path: Path) -> None:
    path, recording = tmp_path / "a", golden_recordings()[0]
    size = save_recording(tmp_path / "whole", recording)
    saves: list[Callable[[], int]] = [
        lambda: save_recording(path, recording),
        lambda: save_text(path, "x" * size),
        lambda: save_folder(path, {"small": b"x", "large": b"x" * size}),
    ]
    for save in saves:
        with _files_of_at_most(size - 1), pytest.raises(InvalidRequest, match="cannot be written"):
            save()
        assert not path.exists()
    assert save_folder(path, {"small": b"x"}) == 1


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequest, match="No such file"):
        load_recording(tmp_path / "none")
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(RecordingError, match=r"text: Line 1"):
        load_recording(tmp_path / "text")
    for module in ("files", "recording"):
        monkeypatch.setattr(f"gateway.recording.{module}.MAX_FILE", 3)
    # A device has no size and no end.
    for path in (tmp_path / "text", Path("/dev/zero")):
        with pytest.raises(RecordingError, match="more than the 3 bytes"):
            load_recording(path)
