"""Every promise about a faulty backend, kept on every wire: to a client that streams and to one that does not, before
the first text and after it; one attempt, one line in the log, one more in the counters."""

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Final

import pytest

from gateway.testing.faults import FAULTS, FAULTS_BY_KIND, playing
from gateway.testing.faulty import FaultyBackend
from tests.promises.played_fault import Played, check_counters, check_log
from tests.promises.table import PROMISES, Promise
from tests.promises.wire_gateway import SHORT, TIMEOUTS, wire_gateway
from tests.promises.wires import WIRES
from tests.tiers import sample


def _plays(row: Promise) -> list[Played]:
    times = (False, True) if row.late else (False,)
    return [
        Played(row, fault, streams, begun)
        for fault in FAULTS_BY_KIND[row.id]
        for streams in (False, True)
        for begun in times
    ]


# Both text wires have one adapter: what comes before the body is read by the same code.
PLAYED: Final = [
    (row, wire)
    for row in PROMISES
    for wire in WIRES
    if (row.late or wire != "text_lines") and (row.id != "lost_call" or WIRES[wire].spoken.lost_call)
]


@sample()
@pytest.mark.parametrize(("row", "wire"), PLAYED, ids=[f"{row.id}-{wire}" for row, wire in PLAYED])
async def test_a_promise_is_kept(row: Promise, wire: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")
    spoken = WIRES[wire].spoken
    plays = _plays(row)
    async with AsyncExitStack() as stack:
        backends: dict[str, FaultyBackend] = {}
        for played in plays:
            context = playing(FAULTS[played.fault], spoken, played.begun)
            backends[played.model] = await stack.enter_async_context(context)
        gateway = await stack.enter_async_context(wire_gateway(WIRES[wire], backends, SHORT if row.waits else TIMEOUTS))
        asked = (gateway.chat(model=played.model, stream=played.streams) for played in plays)
        for played, response in zip(plays, await asyncio.gather(*asked), strict=True):
            played.check(response)
            check_counters(gateway, played)
            check_log(caplog, played, response.headers["x-request-id"])
            reached = FAULTS[played.fault].listens and not FAULTS[played.fault].tls
            assert len(backends[played.model].seen) == (1 if reached else 0), "attempts"
        assert gateway.app.gateway_state.scheduler.size == 0
