"""Several workers share one count; if the shared file fails, each worker counts for itself."""

import os
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from gateway.core.errors import GatewayError
from gateway.server.access.admission import Admission
from gateway.server.access.rate_limit import KeyUsage
from gateway.server.process.process_identity import process_identity
from gateway.server.state.rate_limit_file import BUSY_S
from gateway.server.state.shared_rate_limits import SharedRateLimits
from gateway.settings import KeySettings
from tests.server.access.test_rate_limit import admitted
from tests.server.process.test_process_identity import OURS, PARENT

STREAMS: Final = KeySettings(concurrent_streams=3)
RATE: Final = KeySettings(requests_per_minute=4)


@contextmanager
def workers(path: Path, limits: KeySettings) -> Iterator[tuple[SharedRateLimits, SharedRateLimits]]:
    """Two that live: this process and its parent."""
    one, two = SharedRateLimits(path, OURS, 0), SharedRateLimits(path, PARENT, 0)
    for store in (one, two):
        store.limit("a", limits)
        store.limit("free", KeySettings())
    yield one, two
    for store in (one, two):
        store.close()


def taken(*stores: SharedRateLimits, now: float = 0, of: int = 12) -> int:
    """How many requests, taken in turn, are let in."""
    return sum(admitted(stores[number % len(stores)], "a", now) for number in range(of))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.db"


def test_limits_hold_for_all_together(path: Path) -> None:
    with workers(path, STREAMS) as (one, two):
        assert taken(one, two) == 3
        two.release("a")
        assert taken(one) == 1
        assert taken(two) == 0
    with workers(path, RATE) as (one, two):
        assert taken(one, two) == 4
        assert taken(one, two, now=15) == 1


def test_a_key_without_limits_never_touches_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with workers(path, STREAMS) as (one, two):

        def touched(*_: object) -> None:
            raise AssertionError

        for name in ("acquire", "write"):
            monkeypatch.setattr(f"gateway.server.state.rate_limit_file.RateLimitFile.{name}", touched)
        for _ in range(9):
            one.acquire("free", 0)
        for _ in range(9):
            one.release("free")
        one.settle(1)
        # A refusal for which a worker need not ask either.
        two._own.usage["a"] = KeyUsage(running=3)
        assert not admitted(two, "a")
        assert (one.failures, two.failures) == (0, 0)


def test_what_was_running_when_its_limit_came_is_told_to_the_others(path: Path) -> None:
    with workers(path, STREAMS) as (one, two):
        assert [admitted(one, "free") for _ in range(5)] == [True] * 5
        for store in (one, two):
            store.limit("free", KeySettings(concurrent_streams=5))
            store.settle(1)
        assert not admitted(two, "free")
        one.release("free")
        assert admitted(two, "free")


BEGUN: Final = """
import os, sys
from pathlib import Path
from gateway.server.access.rate_limit import KeyUsage
from gateway.server.process.process_identity import process_identity
from gateway.server.state.rate_limit_file import RateLimitFile
from gateway.settings import KeySettings

file = RateLimitFile(Path(sys.argv[1]), process_identity(os.getpid()))
limits = KeySettings(concurrent_streams=9, requests_per_minute=9)
file.acquire("a", KeyUsage(), limits, 0)
with file._transaction() as run:
    run.execute("UPDATE places SET running = 8")
    run.execute("UPDATE rates SET due = 60")
    # So much that it goes into the file before it is committed.
    run.execute("PRAGMA cache_spill = 1")
    run.execute("PRAGMA cache_size = 1")
    run.executemany("INSERT INTO rates VALUES (?, 0)", [("x" * 500 + str(n),) for n in range(500)])
    print("begun", flush=True)
    sys.stdin.read()
"""


def test_kill_9_in_the_midst_of_a_transaction_leaves_the_file_as_it_was_before(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGUN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    with workers(path, STREAMS) as (one, two):
        # While it lives it has the file, and nobody waits for it.
        assert one.failures == two.failures == 1
        process.kill()
        process.communicate()
        for store in (one, two):
            store.settle(1)
        assert taken(one, two) == 3
        assert one.failures == two.failures == 1
        with sqlite3.connect(path) as seen:
            assert seen.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert [due for (due,) in seen.execute("SELECT due FROM rates")] == [pytest.approx(60 / 9)]
        seen.close()


def test_a_worker_that_was_killed_gives_its_places_back(path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    killed = SharedRateLimits(path, process_identity(process.pid), 0)
    killed.limit("a", STREAMS)
    with workers(path, STREAMS) as (one, two):
        assert taken(killed) == 3
        assert taken(one, two) == 0
        process.kill()
        process.wait()
        assert taken(one, two) == 3
    killed.close()
    process.communicate()


def spoil(path: Path) -> None:
    """Overwrites the files, as a faulty disk or another program may do."""
    for file in path.parent.iterdir():
        file.write_bytes(b"\x00\xffspoilt" * 4096)


def cut_short(path: Path) -> None:
    for file in path.parent.iterdir():
        os.truncate(file, 0)


def remove(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()


def remove_alone(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    remove(path)
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE mine (what TEXT)")
    foreign.close()


def fill(path: Path) -> Callable[[], None]:
    """No file of this process may grow any more, nor be written to: what a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def lock(path: Path) -> Callable[[], None]:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return other.close


Fail = Callable[[Path], Callable[[], None] | None]
# What is over by itself, or by opening the file anew; and what lasts until the file is removed.
PASSING: Final[dict[str, Fail]] = {
    "locked by somebody else": lock,
    "full disk": fill,
    "cut short": cut_short,
    "removed": remove,
    "removed without its journal": remove_alone,
}
LASTING: Final[dict[str, Fail]] = {"spoilt": spoil, "replaced by a file of somebody else": replace}


def settle(stores: tuple[SharedRateLimits, ...], *times: float) -> None:
    for now in times:
        for store in stores:
            store.settle(now)


@pytest.mark.parametrize("limits", [STREAMS, RATE], ids=["streams", "rate"])
@pytest.mark.parametrize("failure", [*PASSING, *LASTING])
def test_a_store_that_fails_refuses_nobody_and_lets_nobody_go_on_without_limit(
    path: Path, failure: str, limits: KeySettings, caplog: pytest.LogCaptureFixture
) -> None:
    """Each worker then lets in as many as the limit says; and when the file can be used, all together do."""
    caplog.set_level("INFO", "gateway")
    most = limits.concurrent_streams or limits.requests_per_minute or 0
    with workers(path, limits) as stores:
        undo = (PASSING | LASTING)[failure](path)
        try:
            settle(stores, 1, 2)
            assert most <= taken(*stores, now=3) <= 2 * most
        finally:
            if undo is not None:
                undo()
        assert all(store.failures >= 1 for store in stores)
        if failure in LASTING:
            settle(stores, 4, 5, 6)
            assert path.exists() and "is used again" not in caplog.text
            remove(path)
        settle(stores, 7, 8, 9)
        for store in stores:
            while store._own.usage["a"].running:
                store.release("a")
        # Everything that was taken on the way is over.
        assert taken(*stores, now=200) == most
        told = [(record.levelname, record.message.partition(" used")[0]) for record in caplog.records]
    name = f"the store {path}"
    assert sorted(told) == sorted([("WARNING", f"{name} cannot be"), ("INFO", f"{name} is")] * 2)


def test_a_failing_store_is_told_once_a_minute(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SharedRateLimits(tmp_path / "nowhere" / "limits.db", OURS, 0)
    for now in range(1, 150):
        store.settle(now)
    assert store.failures == 150
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3


def test_a_lock_of_somebody_else_holds_the_loop_up_once_and_not_for_long(path: Path) -> None:
    with workers(path, KeySettings(requests_per_minute=1000)) as (one, _):
        undo = lock(path)
        before = time.monotonic()
        assert taken(one, of=100) == 100
        assert BUSY_S <= time.monotonic() - before < BUSY_S + 0.5
        undo()


def test_what_was_counted_before_the_machine_was_started_again_holds_nobody_up(path: Path) -> None:
    """The monotonic clock begins anew then."""
    with workers(path, RATE) as (one, _):
        assert taken(one, now=1e6) == 4
    with workers(path, RATE) as (one, _):
        assert taken(one, now=10) == 4


def test_a_clock_jump_changes_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock jumps by years, ahead and back; limits follow the monotonic one."""
    admission = Admission(time.monotonic)
    admission.change(None, {"a": KeySettings(requests_per_minute=1)})
    with admission.admit("a"):
        pass
    for wall in (2e9, 1e8):
        monkeypatch.setattr("time.time", lambda wall=wall: wall)
        with pytest.raises(GatewayError, match="limit requests_per_minute") as caught, admission.admit("a"):
            pass
        assert 55 <= int(caught.value.headers["retry-after"]) <= 60
