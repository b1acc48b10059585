"""The folder of this machine: one key however many begin at once, files that cannot be used told at the start, and
epochs that whoever runs the command begins for the service."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from gateway.core.errors import SettingsError
from gateway.server.state import state_folder
from gateway.server.state.state_folder import StateFolder, StateKeys
from gateway.server.state.store import EVERYONE
from gateway.settings import StateSettings

KEY: Final = "0123456789abcdef" * 4
NOBODY: Final = 65534
ROOT: Final = hasattr(os, "geteuid") and os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="gives a folder to another user")
needs_modes = pytest.mark.skipif(os.name != "posix", reason="files have no modes here")


def environ(folder: Path) -> dict[str, str]:
    return {"STATE_DIRECTORY": str(folder)}


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that other users may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def as_nobody(code: str, *arguments: str) -> str:
    """Runs a few lines as another user, and returns what they print."""
    begin = "import os, sys; from gateway.server.state.state_folder import *; from gateway.settings import *\n"
    begin += f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + code, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"STATE_DIRECTORY": "/one:/two", "XDG_STATE_HOME": "/x", "HOME": "/home/h"}, "/one"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/home/h"}, "/x/dragoman"),
        # The XDG specification: a relative path is ignored.
        ({"XDG_STATE_HOME": "x", "HOME": "/home/h"}, "/home/h/.local/state/dragoman"),
        ({"HOME": "/home/h"}, "/home/h/.local/state/dragoman"),
    ],
)
@needs_modes
def test_the_environment_that_is_given_names_the_folder(given: dict[str, str], expected: str) -> None:
    assert str(StateFolder(given).path) == expected
    assert str(StateFolder(given, "/named").path) == "/named"


@needs_modes
def test_who_has_no_home_has_the_one_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    assert str(StateFolder({}).path) == "/.local/state/dragoman"


@needs_modes
@pytest.mark.parametrize("links", [True, False])
def test_processes_that_begin_at_once_have_one_key(tmp_path: Path, links: bool) -> None:
    code = "import os, sys; from gateway.server.state.state_folder import *; from gateway.settings import *\n"
    if not links:
        code += "def refuse(*_, **__): raise PermissionError(1, 'Operation not permitted')\nos.link = refuse\n"
    code += "print('', flush=True); sys.stdin.readline()\n"
    code += "print(*StateKeys(StateSettings(), {'STATE_DIRECTORY': sys.argv[1]}).sealing())"
    command = [sys.executable, "-c", code, str(tmp_path / "state")]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(6)]
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "\n"
    keys = {process.communicate("\n", timeout=60)[0] for process in running}
    assert len(keys) == 1 and len(keys.pop().strip()) == 64
    assert [one.name for one in (tmp_path / "state").iterdir()] == ["state.key"]


def write(data: bytes, mode: int = 0o600) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        file.write_bytes(data)
        file.chmod(mode)

    return make


UNUSABLE: Final[dict[str, tuple[Callable[[Path], None], str]]] = {
    "empty": (write(b""), "64 hexadecimal digits"),
    "truncated": (write(KEY[:40].encode()), "64 hexadecimal digits"),
    "non-ASCII": (write(b"\xff\xfe" * 40), "64 hexadecimal digits"),
    "two keys": (write(f"{KEY},{KEY}\n".encode()), "64 hexadecimal digits"),
    "large": (write(b"a" * 100_000), "64 hexadecimal digits"),
    "for all to read": (write(KEY.encode(), 0o604), "chmod 600"),
    "for all to write": (write(KEY.encode(), 0o602), "chmod 600"),
    "a folder": (Path.mkdir, "is no file"),
    "a link to nothing": (lambda file: file.symlink_to("nowhere"), "is no file"),
    "a pipe": (lambda file: os.mkfifo(file, 0o600), "is no file"),
}


@needs_modes
@pytest.mark.parametrize("case", UNUSABLE)
def test_a_key_that_cannot_be_used_ends_the_start(tmp_path: Path, case: str) -> None:
    make, told = UNUSABLE[case]
    make(tmp_path / "state.key")
    with pytest.raises(SettingsError, match=told) as caught:
        StateKeys(StateSettings(), environ(tmp_path)).open()
    message = caught.value.message
    assert str(tmp_path / "state.key") in message and "DRAGOMAN_STATE_KEY" in message and KEY not in message
    # Who sets a key needs no file.
    StateKeys(StateSettings(), {**environ(tmp_path), "DRAGOMAN_STATE_KEY": KEY}).open()


@needs_modes
def test_a_volume_may_give_its_group_the_file(tmp_path: Path) -> None:
    # What `fsGroup` of a pod does to every file of a volume.
    write(KEY.encode(), 0o660)(tmp_path / "state.key")
    assert StateKeys(StateSettings(), environ(tmp_path)).sealing() == (KEY,)


@needs_root
def test_a_key_of_another_user_ends_the_start(open_to_all: Path) -> None:
    folder = open_to_all / "state"
    StateKeys(StateSettings(), environ(folder)).open()
    folder.chmod(0o755)
    told = as_nobody(
        "try: StateKeys(StateSettings(), {'STATE_DIRECTORY': sys.argv[1]}).open()\n"
        "except Exception as error: print(type(error).__name__, error)",
        str(folder),
    )
    assert told.startswith("SettingsError") and "Permission denied" in told and "belongs to user 0" in told


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"*": null}', b'{"a": 1e999}', b"\xff"])
def test_epochs_that_cannot_be_read_end_the_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "forgotten.json").write_bytes(content)
    for given in (environ(tmp_path), {**environ(tmp_path), "DRAGOMAN_STATE_KEY": KEY}):
        with pytest.raises(SettingsError, match="forgotten"):
            StateKeys(StateSettings(), given).open()


def test_a_folder_that_the_settings_name_must_be_usable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(SettingsError, match="cannot be used"):
        StateKeys(StateSettings(folder=str(tmp_path / "file" / "state")), {}).open()


@pytest.mark.parametrize("key", ["é" * 40, "\udcff" * 40], ids=["Latin", "no text"])
def test_a_key_of_the_operator_is_ascii(key: str) -> None:
    with pytest.raises(SettingsError, match="DRAGOMAN_STATE_KEY"):
        StateKeys(StateSettings(), {"DRAGOMAN_STATE_KEY": key})


def test_a_start_with_the_operators_key_begins_the_folder_and_makes_no_key(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    StateKeys(StateSettings(), {**environ(folder), "DRAGOMAN_STATE_KEY": KEY}).open()
    assert folder.is_dir() and not list(folder.iterdir())


def test_a_folder_that_cannot_tell_what_is_forgotten_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway")
    StateKeys(StateSettings(), {**environ(Path("/proc/nowhere")), "DRAGOMAN_STATE_KEY": KEY}).open()
    (line,) = caplog.messages
    assert "/proc/nowhere" in line and "only what the store tells" in line


def test_epochs_are_begun_only_in_a_folder_of_a_gateway(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        StateFolder(environ(tmp_path / "state")).forget("alice")
    assert not list(tmp_path.iterdir())


@needs_root
def test_what_root_forgets_stays_readable_to_the_service(open_to_all: Path) -> None:
    folder = open_to_all / "state"
    folder.mkdir(0o700)
    os.chown(folder, NOBODY, NOBODY)
    StateFolder(environ(folder)).forget("alice", 5.0)
    file = (folder / "forgotten.json").stat()
    assert (file.st_uid, file.st_gid, stat.S_IMODE(file.st_mode)) == (NOBODY, NOBODY, 0o600)
    told = "folder = StateFolder({'STATE_DIRECTORY': sys.argv[1]}); print(folder.epoch('alice'), folder.epoch('bob'))"
    assert as_nobody(told, str(folder)) == "5.0 0.0"
    assert as_nobody("StateFolder({'STATE_DIRECTORY': sys.argv[1]}).forget('bob', 6.0)", str(folder)) == ""
    assert StateFolder(environ(folder)).epoch("bob") == 6.0


@needs_modes
def test_commands_that_run_at_once_lose_no_epoch(tmp_path: Path) -> None:
    code = (
        "import sys; from gateway.server.state.state_folder import *\n"
        "print('', flush=True); sys.stdin.readline()\n"
        "[StateFolder({'STATE_DIRECTORY': sys.argv[1]}).forget(sys.argv[2] + str(n), 5.0) for n in range(10)]"
    )
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], stdin=pipe, stdout=pipe, text=True)
        for name in "abcd"
    ]
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "\n"
    for process in running:
        process.stdin.write("\n") if process.stdin else None
        process.stdin.flush() if process.stdin else None
    for process in running:
        process.communicate(timeout=60)
    folder = StateFolder(environ(tmp_path))
    assert [folder.epoch(f"{name}{n}") for name in "abcd" for n in range(10)] == [5.0] * 40
    assert [one.name for one in tmp_path.iterdir()] == ["forgotten.json"]


def test_an_epoch_never_goes_back(tmp_path: Path) -> None:
    folder = StateFolder(environ(tmp_path))
    folder.forget("alice", 9.0)
    folder.forget("alice", 5.0)
    assert folder.epoch("alice") == 9.0


@needs_modes
def test_a_lock_that_stays_held_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(state_folder, "PATIENCE_S", 0.05)
    holder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        with pytest.raises(OSError, match="another process"):
            StateFolder(environ(tmp_path)).forget("alice")
    finally:
        os.close(holder)


def test_what_a_shared_store_says_counts_as_well(tmp_path: Path) -> None:
    folder = StateFolder(environ(tmp_path))
    folder.learn("alice", 7.0)
    folder.learn("alice", 6.0)
    assert (folder.epoch("alice"), folder.epoch("bob")) == (7.0, 0.0)
    folder.learn(EVERYONE, 8.0)
    assert (folder.epoch("alice"), folder.epoch("bob")) == (8.0, 8.0)
