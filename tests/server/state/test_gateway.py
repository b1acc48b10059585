"""A store that fails changes no answer of a gateway, and what is switched off costs nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.server.state.shared_rate_limits import SharedRateLimits
from gateway.server.state.store import Put
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import END, HEAD, Connection, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.state.sqlite.files import LASTING, RECOVERED, Undo


async def well(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hel"), events("text lo", "finish"), END)


@asynccontextmanager
async def serving(path: Path, **settings: Json) -> AsyncIterator[RunningGateway]:
    """A gateway that keeps everything it can in this file, and counts the limits of its client there."""
    async with faulty_backend(well) as backend:
        whole: dict[str, Json] = {
            **settings_for(backend.base_url),
            "state": {"store": f"sqlite:{path}"},
            "keys": {"*": {"requests_per_minute": 10_000, "concurrent_streams": 100}},
            "keeper": {"enabled": True},
            **settings,
        }
        async with running_gateway(whole) as gateway:
            gateway.app.gateway_state.share_limits()
            yield gateway


async def answers(gateway: RunningGateway, number: int = 4) -> list[tuple[int, str]]:
    found = [await gateway.chat(stream=bool(turn % 2)) for turn in range(number)]
    return [(one.status_code, one.text.partition("Hel")[1] and "answered") for one in found]


EVENTS: Final[dict[str, Callable[[Path], Undo]]] = RECOVERED | LASTING


@pytest.mark.parametrize("event", EVENTS)
async def test_a_file_that_fails_changes_no_answer(tmp_path: Path, event: str) -> None:
    path = tmp_path / "state" / "gateway.db"
    async with serving(path) as gateway:
        before = await answers(gateway)
        assert before == [(200, "answered")] * 4
        undo = EVENTS[event](path)
        try:
            assert await answers(gateway, 8) == before * 2
        finally:
            if undo is not None:
                undo()
        assert await answers(gateway) == before


async def test_a_store_that_hangs_costs_three_requests_their_deadline_and_the_others_nothing(tmp_path: Path) -> None:
    """Counted by what is asked of the store, not by a clock."""
    async with serving(tmp_path / "gateway.db", state={"store": f"sqlite:{tmp_path / 'gateway.db'}"}) as gateway:
        shared = gateway.app.gateway_state.admission.shared
        assert isinstance(shared, SharedRateLimits)
        asked = 0

        async def hang(*_: object) -> None:
            nonlocal asked
            asked += 1
            await asyncio.sleep(60)

        for name in ("take", "state_running", "ping"):
            setattr(shared._store, name, hang)
        assert await answers(gateway, 20) == [(200, "answered")] * 20
        # Three failures; then a ping after a second, another one after twice that, and so on.
        assert 3 <= asked <= 3 + 5


async def test_what_one_worker_forgets_the_other_one_does_not_find(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    async with serving(path) as one, serving(path) as two:
        mine, other = (gateway.app.gateway_state.store for gateway in (one, two))
        epoch = await mine.epoch("-")
        await mine.put("-", Put("ops", b"k", b"kept", 60))
        [found] = await other.get("-", "ops", [b"k"])
        assert found is not None and found.data == b"kept"
        await other.forget("-")
        assert await mine.get("-", "ops", [b"k"]) == [None]
        assert await mine.epoch("-") != epoch
