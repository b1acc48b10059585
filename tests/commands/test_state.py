"""`dragoman state` shows and deletes what the file or the server of the settings holds, and nothing else."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from bench.load_test.store_servers import PROGRAMS, server
from gateway.server.state.open_store import open_store
from gateway.server.state.state_folder import StateFolder, StateKeys
from gateway.server.state.store import Put, StateStore
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings

KEY: Final = "x" * 64


class Place(msgspec.Struct, frozen=True):
    """A settings file, and the store that it names, as a gateway has it open."""

    settings: Path
    store: StateStore

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Runs the command in a process of its own, without the key of the contents."""
        return await asyncio.to_thread(run, self.settings, *arguments)


def run(settings: Path, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "gateway", "state", *arguments]
    command[5:5] = ["--settings", str(settings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def written(folder: Path, state: dict[str, object]) -> Path:
    path = folder / "settings.json"
    path.write_text(json.dumps({"state": state, "keys": {}, "server": {"api_keys_file": str(folder / "keys")}}))
    (folder / "keys").write_text("alice:a-secret\nbob:b-secret\n")
    return path


@asynccontextmanager
async def place(folder: Path, url: str) -> AsyncIterator[Place]:
    store = open_store(StateSettings(store=url), Metrics(), {"DRAGOMAN_STATE_KEY": KEY})
    async with aclosing(store):
        for tenant in ("alice", "bob", "gone"):
            await store.put(tenant, Put("rsp", b"1", b"the words of " + tenant.encode(), 60))
        await store.put("alice", Put("sum", b"2", b"more words", 60))
        yield Place(written(folder, {"store": url}), store)


@pytest.fixture(params=["sqlite", *PROGRAMS])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        url = f"sqlite:{tmp_path / 'state.db'}"
        if request.param != "sqlite":
            url = (await stack.enter_async_context(server(request.param, tmp_path))).url
        yield await stack.enter_async_context(place(tmp_path, url))


async def left(store: StateStore) -> list[str]:
    """The tenants of whom something can be read."""
    found = [tenant for tenant in ("alice", "bob", "gone") if await store.get(tenant, "rsp", (b"1",)) != [None]]
    return found


async def test_what_is_stored_is_counted_and_never_shown(stored: Place) -> None:
    status, shown, errors = await stored.run("show")
    assert (status, errors) == (0, "")
    rows = [line.split() for line in shown.splitlines()[2:]]
    assert [(row[0], row[-3], row[-2]) for row in rows if row[0] in ("alice", "bob")] == [
        ("alice", "(rsp)", "1"),
        ("alice", "(sum)", "1"),
        ("bob", "(rsp)", "1"),
    ]
    assert len(rows) == 4
    status, stats, errors = await stored.run("stats")
    assert (status, errors) == (0, "")
    assert [line.split()[-2:-1] for line in stats.splitlines()[2:4]] == [["3"], ["1"]]
    assert "words" not in shown + stats and "secret" not in shown + stats


async def test_one_key_is_forgotten_and_the_others_are_not(stored: Place) -> None:
    assert await left(stored.store) == ["alice", "bob", "gone"]
    for name in ("alice", "gone", "nobody"):
        status, told, errors = await stored.run("forget", name)
        assert (status, errors) == (0, "") and f"{name!r} is deleted" in told
    assert await left(stored.store) == ["bob"]
    await stored.store.put("alice", Put("rsp", b"1", b"new", 60))
    assert await left(stored.store) == ["alice", "bob"]


async def test_everything_is_deleted(stored: Place) -> None:
    status, told, errors = await stored.run("purge")
    assert (status, errors) == (0, "") and "everything is deleted" in told
    assert await left(stored.store) == []


WRONG: Final[dict[str, tuple[Callable[[Path], dict[str, object]], str]]] = {
    "memory": (lambda folder: {}, "restart the gateway to delete what it remembers"),
    "no server": (lambda folder: {"store": "valkey://127.0.0.1:1"}, "the store is down"),
    "a foreign file": (lambda folder: {"store": f"sqlite:{folder / 'keys'}"}, "is not a store of this version"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_store_that_cannot_be_reached_is_one_line(tmp_path: Path, case: str) -> None:
    state, told = WRONG[case]
    status, shown, errors = run(written(tmp_path, state(tmp_path)), "stats")
    assert (status, shown) == (2, "")
    assert told in errors and errors.count("\n") == 1


ACTIONS: Final = [(("forget", "alice"), "'alice'"), (("purge",), "all API keys")]


def begun(folder: Path) -> StateFolder:
    """The folder of a gateway that has begun."""
    StateKeys(StateSettings(folder=str(folder)), {}).open()
    return StateFolder({}, str(folder))


@pytest.mark.parametrize(("action", "told"), ACTIONS)
def test_a_new_epoch_begins_without_a_store_too(tmp_path: Path, action: tuple[str, ...], told: str) -> None:
    folder, before = begun(tmp_path / "state"), time.time()
    status, shown, errors = run(written(tmp_path, {"folder": str(folder.path)}), *action)
    assert (status, errors) == (0, "") and f"compactions of {told} made before now are no longer opened" in shown
    assert "restart the gateway" in shown and str(folder.path) in shown
    assert before <= folder.epoch("alice") <= time.time()
    assert folder.epoch("bob") == (0.0 if action[0] == "forget" else folder.epoch("alice"))


@pytest.mark.parametrize(("action", "told"), ACTIONS)
def test_a_folder_that_no_gateway_has_is_told(tmp_path: Path, action: tuple[str, ...], told: str) -> None:
    place = tmp_path / "elsewhere"
    status, shown, errors = run(written(tmp_path, {"folder": str(place)}), *action)
    assert (status, shown) == (2, "") and errors.count("\n") == 1
    assert str(place) in errors and "state.folder" in errors and not place.exists()


async def test_with_a_shared_store_no_folder_is_needed(stored: Place, tmp_path: Path) -> None:
    settings = written(tmp_path, {"store": stored.store.name, "folder": str(tmp_path / "elsewhere")})
    status, shown, errors = await asyncio.to_thread(run, settings, "forget", "alice")
    assert (status, errors) == (0, "") and "'alice' is deleted" in shown
    assert await left(stored.store) == ["bob", "gone"]
    assert not (tmp_path / "elsewhere").exists()


async def test_a_folder_that_cannot_be_used_keeps_nothing_in_the_store(stored: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    settings = written(tmp_path, {"store": stored.store.name, "folder": str(tmp_path / "file")})
    status, shown, errors = await asyncio.to_thread(run, settings, "forget", "alice")
    assert status == 2 and "'alice' is deleted" in shown and str(tmp_path / "file") in errors
    assert await left(stored.store) == ["bob", "gone"]


@pytest.mark.parametrize("case", ["no server", "a foreign file"])
def test_the_epoch_has_begun_although_the_store_fails(tmp_path: Path, case: str) -> None:
    state, told = WRONG[case]
    folder = begun(tmp_path / "state")
    status, shown, errors = run(written(tmp_path, {**state(tmp_path), "folder": str(folder.path)}), "forget", "alice")
    assert status == 2 and told in errors and "no longer opened on this machine" in shown
    assert folder.epoch("alice") > 0


def test_the_folder_is_the_one_of_the_services_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = begun(tmp_path / ".local" / "state" / "dragoman")
    assert run(written(tmp_path, {}), "forget", "alice")[0] == 0
    assert folder.epoch("alice") > 0
