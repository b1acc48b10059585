"""Tests that a process which was stopped beyond the end of its lease changes nothing of what another one has done."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from bench.load_test.store_servers import PROGRAMS, Server, server
from gateway.server.state.open_store import open_store
from gateway.server.state.store import Lease, Put, StateStore
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings
from tests.machines.installed import needs
from tests.paths import ROOT

pytestmark = [pytest.mark.state, needs()]

ENVIRON: Final = {"DRAGOMAN_STATE_KEY": "k" * 32}
# Longer than a busy machine takes for a test, and what a test waits for.
LONG_S: Final = 60.0
SHORT_S: Final = 5.0


@asynccontextmanager
async def holder(running: Server, ttl_s: float) -> AsyncIterator[Process]:
    """Another process, which holds the lease for this time."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.machines.lease_holder", running.url, str(ttl_s)),
        cwd=ROOT,
        env={**os.environ, **ENVIRON},
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        assert await said(process) == "held"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def opened(running: Server) -> aclosing[StateStore]:
    """The store of the test's own process."""
    return aclosing(open_store(StateSettings(store=running.url), Metrics(), ENVIRON))


async def said(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        return (await process.stdout.readline()).decode().strip()


async def commits(process: Process) -> str:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    await process.stdin.drain()
    return await said(process)


async def taken(store: StateStore) -> Lease:
    """The lease, as soon as nobody holds it."""
    async with asyncio.timeout(60):
        while (lease := await store.acquire("a", "work", LONG_S)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return lease


async def data(store: StateStore) -> bytes | None:
    [entry] = await store.get("a", "sum", [b"k"])
    return None if entry is None else entry.data


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("overtaken", [True, False], ids=["another has committed", "nobody else wanted it"])
async def test_a_holder_that_was_stopped_beyond_its_lease_is_refused(
    kind: str, overtaken: bool, tmp_path: Path
) -> None:
    async with server(kind, tmp_path) as running, holder(running, SHORT_S) as other, opened(running) as store:
        os.kill(other.pid, signal.SIGSTOP)
        assert await store.acquire("a", "work", LONG_S) is None
        lease = await taken(store)
        if overtaken:
            assert await store.commit(lease, [Put("sum", b"k", b"first", 600)])
        await store.release(lease)
        os.kill(other.pid, signal.SIGCONT)
        assert await commits(other) == "refused"
        assert await data(store) == (b"first" if overtaken else None)


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_the_lease_of_a_killed_holder_ends_and_its_work_is_done_by_another(kind: str, tmp_path: Path) -> None:
    async with server(kind, tmp_path) as running, holder(running, SHORT_S) as other, opened(running) as store:
        other.kill()
        lease = await taken(store)
        assert await store.commit(lease, [Put("sum", b"k", b"first", 600)])
        assert await data(store) == b"first"


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_holder_within_its_lease_commits(kind: str, tmp_path: Path) -> None:
    async with server(kind, tmp_path) as running, holder(running, LONG_S) as other, opened(running) as store:
        assert await commits(other) == "committed"
        assert await data(store) == b"late"
