"""Interruptions: whichever comes first counts, and no task keeps a cancellation it was not meant to have."""

import asyncio

import pytest

from gateway.errors import BackendRejected, BackendTimeout
from gateway.server.watch import ClientGone, Sweeper, first_byte_late, idle_late


@pytest.fixture
def sweeper() -> Sweeper:
    return Sweeper(tick=0.01)


async def test_an_overdue_wait_ends_with_its_own_error(sweeper: Sweeper) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(BackendTimeout, match="stopped sending"), sweeper.watch() as watch:
        watch.expect(loop.time() + 0.05, idle_late)
        await asyncio.sleep(5)
    assert 0.04 < loop.time() - begun < 0.5
    assert sweeper.size == 0
    await asyncio.sleep(0)


async def test_progress_moves_the_deadline_but_not_the_total(sweeper: Sweeper) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(BackendTimeout, match="did not finish"), sweeper.watch() as watch:
        watch.total_due = begun + 0.2
        while True:
            watch.expect(loop.time() + 3, first_byte_late)
            await asyncio.sleep(0.02)
    assert 0.2 <= loop.time() - begun < 0.6


async def test_the_first_interruption_counts(sweeper: Sweeper) -> None:
    with pytest.raises(ClientGone), sweeper.watch() as watch:
        watch.interrupt(ClientGone())
        watch.interrupt(BackendTimeout("later"))
        await asyncio.sleep(5)


async def test_another_error_on_the_way_out_wins_and_leaves_no_cancellation(sweeper: Sweeper) -> None:
    with pytest.raises(BackendRejected), sweeper.watch() as watch:
        watch.interrupt(ClientGone())
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            raise BackendRejected("first") from None
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0


async def test_a_cancellation_from_outside_stays_one(sweeper: Sweeper) -> None:
    async def wait() -> None:
        with sweeper.watch():
            await asyncio.sleep(5)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sweeper.size == 0


async def test_silence_is_told_again_and_again(sweeper: Sweeper) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    told = 0
    with sweeper.watch() as watch:

        def tell() -> None:
            nonlocal told
            told += 1
            watch.quiet_due = loop.time() + 0.03

        watch.on_quiet = tell
        watch.quiet_due = loop.time() + 0.03
        async with asyncio.timeout(5):
            while told < 3:  # noqa: ASYNC110 (nothing is set)
                await asyncio.sleep(0.01)
    assert (loop.time() - begun) / told >= 0.03


async def test_all_can_be_interrupted_at_once(sweeper: Sweeper) -> None:
    async def wait() -> str:
        try:
            with sweeper.watch():
                await asyncio.sleep(5)
        except BackendRejected:
            return "told"
        return "finished"

    tasks = [asyncio.create_task(wait()) for _ in range(5)]
    await asyncio.sleep(0.01)
    sweeper.interrupt_all(lambda: BackendRejected("stop"))
    assert await asyncio.gather(*tasks) == ["told"] * 5
