"""Every promise about a faulty backend over gRPC, kept to a client that streams and to one that does not, before the
first text and after it; one line in the log, one more in the counters."""

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.demo.faults.kinds import GRPC_FAILURES
from gateway.testing.gateway import running_gateway
from tests.promises.grpc_faults import ENTRY, GRPC_FAULTS_BY_KIND
from tests.promises.played_fault import Played, check_counters, check_log
from tests.promises.table import GRPC_PROMISES, Promise
from tests.promises.wire_gateway import LIMITS, SHORT, TIMEOUTS
from tests.server.upstream.http2.peer import serving
from tests.tiers import sample

# Only this fault is seen by the limit of connecting.
NO_SETTINGS: Final = {**TIMEOUTS, "connect": 0.3, "first_byte": 60}


def test_every_kind_has_one_promise_and_faults() -> None:
    assert [row.id for row in GRPC_PROMISES] == [*GRPC_FAULTS_BY_KIND] == [*GRPC_FAILURES]


@sample(lambda row: row.early.status)
@pytest.mark.parametrize("row", GRPC_PROMISES, ids=lambda row: row.id)
async def test_a_promise_is_kept(row: Promise, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")
    plays = [
        Played(row, fault, streams, begun)
        for fault in GRPC_FAULTS_BY_KIND[row.id]
        for streams in (False, True)
        for begun in ((False, True) if row.late else (False,))
    ]
    async with AsyncExitStack() as stack:
        backends: dict[str, Json] = {}
        for played in plays:
            script = GRPC_FAULTS_BY_KIND[row.id][played.fault].script(played.begun)
            port, _ = await stack.enter_async_context(serving(script))
            timeouts: Json = dict(SHORT if row.waits else TIMEOUTS)
            if row.id == "no_settings":
                timeouts = dict(NO_SETTINGS)
            backends[played.model] = {**ENTRY, "base_url": f"http://127.0.0.1:{port}", "timeouts": timeouts}
        settings: dict[str, Json] = {
            "server": {"sse_ping_s": 60},
            "limits": dict(LIMITS),
            "backends": backends,
            "models": {name: {"backend": name} for name in backends},
        }
        gateway = await stack.enter_async_context(running_gateway(settings))
        asked = (gateway.chat(model=played.model, stream=played.streams) for played in plays)
        for played, response in zip(plays, await asyncio.gather(*asked), strict=True):
            played.check(response)
            check_counters(gateway, played)
            check_log(caplog, played, response.headers["x-request-id"])
        assert gateway.app.gateway_state.scheduler.size == 0
