"""Tests uncaught exceptions in the event loop."""

import asyncio
import logging

import pytest

from gateway.server.process.loop_exception_handler import LoopExceptionHandler


async def test_what_nobody_caught_is_told_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopExceptionHandler())

    def fail() -> None:
        raise RuntimeError("a bug")

    with caplog.at_level(logging.ERROR, "gateway"):
        for _ in range(100):
            loop.call_soon(fail)
        await asyncio.sleep(0.01)
    (record,) = caplog.records
    assert "exception in the event loop (1 since the last such line): Exception in callback" in record.getMessage()
    assert record.exc_info is not None and str(record.exc_info[1]) == "a bug"


async def test_what_came_without_an_exception_is_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    LoopExceptionHandler()(asyncio.get_running_loop(), {"message": "odd"})
    assert [record.getMessage() for record in caplog.records] == [
        "exception in the event loop (1 since the last such line): odd"
    ]
