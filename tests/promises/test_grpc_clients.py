"""Over gRPC, clients that share a connection do not hinder each other: the stream of a disconnected one is cancelled
within half a second, in every state, and that of a slow one is paused."""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec
import pytest
from h2.events import Event, RequestReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.adapters.proto.backend.services import answer, envelope
from tests.promises.disconnecting_client import chat_request, leave, let_go
from tests.promises.grpc_faults import BEGIN, END, ENTRY, TEXT
from tests.server.samples import value_of
from tests.server.upstream.http2.peer import Peer, serving
from tests.tiers import sample

LARGE: Final = envelope(answer("parts", {"parts": [{"text": "x" * 16_000}]}))


class Phase(msgspec.Struct, frozen=True):
    """What the backend has done when the client leaves; `goes_on` sending; the name in the counters."""

    greets: bool = True
    takes: bool = True
    says_head: bool = False
    begins: bool = False
    goes_on: bool = False
    counted: str = "head"


PHASES: Final[Mapping[str, Phase]] = {
    "while the connection opens": Phase(greets=False, counted="connect"),
    "while the request is sent": Phase(takes=False),
    "before the head": Phase(),
    "before the first text": Phase(says_head=True),
    "stalled": Phase(says_head=True, begins=True, counted="stream"),
    "busy": Phase(says_head=True, begins=True, goes_on=True, counted="stream"),
}


class Backend:
    """`asked` is set in the phase, `gone` when the stream is cancelled, or the connection where it has none."""

    def __init__(self, phase: Phase) -> None:
        self._phase = phase
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()

    async def play(self, peer: Peer) -> None:
        """Serve the client that leaves, and then answer others on the same connection."""
        if not self._phase.greets:
            self.asked.set()
            await peer.closed()
            self.gone.set()
            return
        peer.greet({} if self._phase.takes else {SettingCodes.INITIAL_WINDOW_SIZE: 0})
        stream = await peer.request() if self._phase.takes else (await peer.next(RequestReceived)).stream_id
        if self._phase.says_head:
            peer.begin(stream)
        if self._phase.begins:
            peer.data(stream, BEGIN)
        self.asked.set()
        busy = asyncio.ensure_future(self._go_on(peer, stream))
        reset = await peer.next(StreamReset)
        busy.cancel()
        assert (reset.stream_id, reset.error_code) == (stream, 8)
        self.gone.set()
        peer.state.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2**16})
        peer.flush()
        peer.answer(await peer.request(), TEXT + END)
        await peer.closed()

    async def _go_on(self, peer: Peer, stream: int) -> None:
        while self._phase.goes_on:
            peer.data(stream, TEXT)
            await asyncio.sleep(0.005)


@sample()
@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", PHASES)
async def test_a_stream_is_cancelled_alone(name: str, streams: bool, resets: bool) -> None:
    phase = PHASES[name]
    backend = Backend(phase)
    async with serving(backend.play) as (port, peers):
        entry: dict[str, Json] = {**ENTRY, "base_url": f"http://127.0.0.1:{port}", "timeouts": {"connect": 60}}
        async with running_gateway({"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}) as gateway:
            await leave(gateway, backend.asked, streams=streams, begun=phase.begins, resets=resets)
            assert await let_go(backend.gone)
            assert value_of(gateway.app.gateway_state.metrics, "gateway_client_aborts_total", phase.counted) == 1
            if phase.greets:
                assert (await gateway.chat()).json()["choices"][0]["message"]["content"] == "two "
        assert len(peers) == 1


class Pouring:
    """A backend that pours text into its first stream as the window allows, and answers the others. `sent` counts
    bytes."""

    def __init__(self) -> None:
        self.sent = 0

    async def play(self, peer: Peer) -> None:
        peer.greet()
        slow = await peer.request()
        peer.begin(slow)
        while True:
            while peer.state.local_flow_control_window(slow) >= len(LARGE):
                peer.data(slow, LARGE)
                self.sent += len(LARGE)
            event = await peer.next(Event)
            if isinstance(event, StreamEnded):
                peer.answer(event.stream_id, TEXT + END)


async def test_a_client_that_takes_nothing_pauses_its_own_stream_alone() -> None:
    backend = Pouring()
    async with serving(backend.play) as (port, peers):
        entry: dict[str, Json] = {**ENTRY, "base_url": f"http://127.0.0.1:{port}", "timeouts": {"connect": 60}}
        async with running_gateway({"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}) as gateway:
            reader, writer = await asyncio.open_connection(gateway.host, gateway.port, limit=1024)
            writer.write(chat_request(streams=True))
            before = -1
            while before != backend.sent or not before:
                before = backend.sent
                await asyncio.sleep(0.2)
            answers = await asyncio.gather(*(gateway.chat() for _ in range(20)))
            assert {answer.json()["choices"][0]["message"]["content"] for answer in answers} == {"two "}
            assert before <= backend.sent < 24 * 2**20
            writer.transport.abort()
            del reader
        assert len(peers) == 1
