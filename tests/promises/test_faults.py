"""Every promise about a faulty backend, kept on every wire: to a client that streams and to one that does not, before
the first text and after it; one attempt, one line in the log, one more in the counters."""

import asyncio
import json
import logging
import re
from contextlib import AsyncExitStack
from typing import Final

import httpx
import pytest

from gateway.testing.faults import FAULTS, FAULTS_BY_KIND, playing
from gateway.testing.faulty import FaultyBackend
from gateway.testing.gateway import RunningGateway
from tests.promises.table import PROMISES, Promise
from tests.promises.wire_gateway import SHORT, TIMEOUTS, finishes, frames, text_of, wire_gateway
from tests.promises.wires import WIRES
from tests.server.samples import value_of

LINE: Final = re.compile(
    r"upstream_failure request_id=(\S+) backend=(\S+) model=\S+ phase=(\S+) code=(\S+) upstream_status=\S+ "
    r"attempt=(\d) ms=[\d.]+ "
)


class Played:
    """One fault, to one kind of client, at one time."""

    def __init__(self, row: Promise, fault: str, streams: bool, begun: bool) -> None:
        self.row = row
        self.fault = fault
        self.streams = streams
        self.begun = begun
        self.model = f"{'stream' if streams else 'whole'}-{'late' if begun else 'early'}-{fault.replace(' ', '_')}"
        self.code = row.late if begun and row.late else row.early.code
        self.phase = "stream" if begun else row.phase

    def check(self, response: httpx.Response) -> None:
        if self.streams and (self.begun or (self.row.phase == "stream" and response.status_code == 200)):
            self._check_frame(response)
        else:
            self._check_status(response)
        assert response.headers["x-request-id"]
        assert "nginx" not in response.text

    def _check_frame(self, response: httpx.Response) -> None:
        assert response.status_code == 200
        *data, last = frames(response.text)
        error = json.loads(last)["error"]
        assert (error["type"], error["code"]) == (self.row.early.type, self.code)
        assert set(error) >= {"message", "type", "param", "code"}
        assert text_of(data).lstrip().startswith("one" if self.begun else "two")
        assert finishes(data) == []
        assert response.text.count('"error"') == 1
        assert response.text.endswith("\n\n") and "[DONE]" not in response.text

    def _check_status(self, response: httpx.Response) -> None:
        told = self.row.early
        assert response.headers["content-type"] == "application/json"
        error = response.json()["error"]
        assert (response.status_code, error["type"], error["code"]) == (told.status, told.type, self.code)
        assert set(error) >= {"message", "type", "param", "code"}
        shown = {name: response.headers.get(name, "") for name in ("retry-after", "x-should-retry")}
        assert shown == {"retry-after": "", "x-should-retry": "", **told.headers}


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
            _check_counters(gateway, played)
            _check_log(caplog, played, response.headers["x-request-id"])
            reached = FAULTS[played.fault].listens and not FAULTS[played.fault].tls
            assert len(backends[played.model].seen) == (1 if reached else 0), "attempts"
        assert gateway.app.gateway_state.scheduler.size == 0


def _check_counters(gateway: RunningGateway, played: Played) -> None:
    metrics = gateway.app.gateway_state.metrics
    assert value_of(metrics, "gateway_upstream_errors_total", played.model, played.code, played.phase) == 1
    early = not played.begun
    for name in played.row.counted:
        assert value_of(metrics, name, played.model) == (
            0 if name == "gateway_ttfb_timeouts_total" and not early else 1
        )


def _check_log(caplog: pytest.LogCaptureFixture, played: Played, request_id: str) -> None:
    lines = [
        (record.levelname, *found.groups())
        for record in caplog.records
        if (found := LINE.match(record.getMessage())) and found[2] == played.model
    ]
    attempts = "2" if played.row.id == "unreachable" else "1"
    assert lines == [(played.row.level.upper(), request_id, played.model, played.phase, played.code, attempts)]
