"""The backend request of a disconnected client is closed within half a second, in every state."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import msgspec
import pytest

from gateway.testing.faulty import Connection, Script, chunk, faulty_backend, head
from tests.promises.disconnecting_client import leave, let_go
from tests.promises.wire_gateway import wire_gateway
from tests.promises.wires import WIRES
from tests.server.samples import value_of
from tests.tiers import sample


class Phase(msgspec.Struct, frozen=True):
    """What the backend has sent when the client leaves; `goes_on` sending; the name in the counters."""

    says_head: bool
    begins: bool
    goes_on: bool
    counted: str


PHASES: Final[Mapping[str, Phase]] = {
    "before the head": Phase(False, False, False, "head"),
    "before the first text": Phase(True, False, False, "head"),
    "stalled": Phase(True, True, False, "stream"),
    "busy": Phase(True, True, True, "stream"),
}


def _script(phase: Phase, wire: str) -> Script:
    async def script(connection: Connection) -> None:
        spoken = WIRES[wire].spoken
        if phase.says_head:
            await connection.send(head(spoken.media_type))
        if phase.begins:
            await connection.send(chunk(spoken.begin))
        while phase.goes_on:
            await connection.send(chunk(spoken.text))
            await asyncio.sleep(0.005)
        await connection.gone()

    return script


@sample()
@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", PHASES)
@pytest.mark.parametrize("wire", ["native", "protobuf"])
async def test_the_backend_is_let_go(
    wire: str, name: str, streams: bool, resets: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    phase = PHASES[name]
    async with (
        faulty_backend(_script(phase, wire)) as backend,
        wire_gateway(WIRES[wire], {"m": backend}) as gateway,
    ):
        await leave(gateway, backend.requested, streams=streams, begun=phase.begins, resets=resets)
        assert await let_go(backend.closed)
        assert gateway.app.gateway_state.scheduler.size == 0
        assert value_of(gateway.app.gateway_state.metrics, "gateway_client_aborts_total", phase.counted) == 1
        assert len(backend.seen) == 1
        told = [message for record in caplog.records if " status=499 " in (message := record.getMessage())]
        assert len(told) == 1
