"""Tests interruptions: the first one applies, and no task keeps an unrelated cancellation."""

import asyncio

import pytest

from gateway.adapter import TimeoutHeader
from gateway.core.errors import BackendRejected, BackendTimeout, ServerShutdown
from gateway.server.upstream.deadlines import (
    ClientDisconnected,
    DeadlineScheduler,
    first_byte_timeout,
    idle_timeout,
    timeout_header,
)


@pytest.fixture
def scheduler() -> DeadlineScheduler:
    return DeadlineScheduler(tick=0.01)


async def test_an_overdue_wait_ends_with_its_own_error(scheduler: DeadlineScheduler) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(BackendTimeout, match="sent nothing for too long"), scheduler.deadlines() as deadlines:
        deadlines.expect(loop.time() + 0.05, idle_timeout)
        await asyncio.sleep(5)
    # Less than the sleep.
    assert 0.04 < loop.time() - begun < 4
    assert scheduler.size == 0
    await asyncio.sleep(0)


async def test_progress_moves_the_deadline_but_not_the_total(scheduler: DeadlineScheduler) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(BackendTimeout, match="did not finish"), scheduler.deadlines() as deadlines:
        deadlines.total_due = begun + 0.2
        while True:
            deadlines.expect(loop.time() + 30, first_byte_timeout)
            await asyncio.sleep(0.02)
    # Less than the wait that moves.
    assert 0.2 <= loop.time() - begun < 20


async def test_the_first_interruption_counts(scheduler: DeadlineScheduler) -> None:
    with pytest.raises(ClientDisconnected), scheduler.deadlines() as deadlines:
        deadlines.interrupt(ClientDisconnected())
        deadlines.interrupt(BackendTimeout("later"))
        await asyncio.sleep(5)


async def test_another_error_on_the_way_out_wins_and_leaves_no_cancellation(scheduler: DeadlineScheduler) -> None:
    with pytest.raises(BackendRejected), scheduler.deadlines() as deadlines:
        deadlines.interrupt(ClientDisconnected())
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            raise BackendRejected("first") from None
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0


async def test_a_cancellation_from_outside_stays_one(scheduler: DeadlineScheduler) -> None:
    async def wait() -> None:
        with scheduler.deadlines():
            await asyncio.sleep(5)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert scheduler.size == 0


async def test_silence_is_told_again_and_again(scheduler: DeadlineScheduler) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    told = 0
    with scheduler.deadlines() as deadlines:

        def tell() -> None:
            nonlocal told
            told += 1
            deadlines.quiet_due = loop.time() + 0.03

        deadlines.on_quiet = tell
        deadlines.quiet_due = loop.time() + 0.03
        async with asyncio.timeout(5):
            while told < 3:  # noqa: ASYNC110 (nothing is set)
                await asyncio.sleep(0.01)
    assert (loop.time() - begun) / told >= 0.03


async def test_all_can_be_interrupted_at_once(scheduler: DeadlineScheduler) -> None:
    async def wait() -> str:
        try:
            with scheduler.deadlines():
                await asyncio.sleep(5)
        except BackendRejected:
            return "told"
        return "finished"

    tasks = [asyncio.create_task(wait()) for _ in range(5)]
    await asyncio.sleep(0.01)
    scheduler.interrupt_all(lambda: BackendRejected("stop"))
    assert await asyncio.gather(*tasks) == ["told"] * 5


@pytest.mark.parametrize(
    ("name", "seconds", "value"),
    [
        ("grpc-timeout", 600, "600000m"),
        ("grpc-timeout", 0.0001, "1m"),
        ("grpc-timeout", -5, "1m"),
        ("grpc-timeout", 1.2341, "1235m"),
        ("grpc-timeout", 99_999.999, "99999999m"),
        ("grpc-timeout", 100_000, "100000S"),
        ("grpc-timeout", 1e12, "99999999S"),
        ("connect-timeout-ms", 600, "600000"),
        ("connect-timeout-ms", 0, "1"),
        ("connect-timeout-ms", 1e12, "9999999999"),
    ],
)
def test_the_time_fits_the_header_and_is_never_too_short(name: TimeoutHeader, seconds: float, value: str) -> None:
    assert timeout_header(name, seconds) == (name, value)


async def test_a_wait_that_is_over_may_be_followed_by_another_one(scheduler: DeadlineScheduler) -> None:
    with scheduler.deadlines() as deadlines:
        for _ in range(2):
            deadlines.expect(0, first_byte_timeout)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(20)
            late = deadlines.resume()
            assert late is not None and "timeouts.first_byte" in late.message
        # What is awaited next is not interrupted by the wait before.
        await asyncio.sleep(0.05)
    assert deadlines.reason is None


@pytest.mark.parametrize("reason", [ClientDisconnected(), ServerShutdown("stop")])
async def test_what_ends_the_request_cannot_be_taken_back(scheduler: DeadlineScheduler, reason: Exception) -> None:
    with pytest.raises(type(reason)), scheduler.deadlines() as deadlines:
        deadlines.interrupt(reason)
        try:
            await asyncio.sleep(20)
        finally:
            assert deadlines.resume() is None


@pytest.mark.parametrize("reason", [ClientDisconnected(), ServerShutdown("stop")])
async def test_a_wait_that_is_over_is_not_taken_back_where_the_request_ends_meanwhile(
    scheduler: DeadlineScheduler, reason: Exception
) -> None:
    with pytest.raises(type(reason)), scheduler.deadlines() as deadlines:
        deadlines.interrupt(first_byte_timeout())
        # Before the task has run again.
        deadlines.interrupt(reason)
        deadlines.interrupt(first_byte_timeout())
        try:
            await asyncio.sleep(20)
        finally:
            assert deadlines.resume() is None


async def test_the_whole_time_and_a_foreign_cancellation_cannot_be_taken_back(scheduler: DeadlineScheduler) -> None:
    with pytest.raises(BackendTimeout, match=r"timeouts\.total"), scheduler.deadlines() as deadlines:
        deadlines.total_due = 0
        try:
            await asyncio.sleep(20)
        finally:
            assert deadlines.resume() is None

    async def cancelled_twice() -> None:
        with scheduler.deadlines() as deadlines:
            deadlines.expect(0, first_byte_timeout)
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                assert deadlines.resume() is None
                raise

    with pytest.raises((asyncio.CancelledError, BackendTimeout)):
        await asyncio.create_task(cancelled_twice())
