"""Irregular responses without a loss are served, on every wire, whole and streamed: one finish and one `[DONE]`."""

import asyncio
import re
import zlib
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.server.api.relay import REST_S
from gateway.server.upstream.backend_response import DRAIN_S
from gateway.testing.faults import PAUSE_S
from gateway.testing.faulty import END, Connection, chunk, faulty_backend, head
from gateway.testing.gateway import RunningGateway
from tests.promises.wire_gateway import TIMEOUTS, finishes, frames, text_of, wire_gateway
from tests.promises.wires import WIRES, Wire
from tests.server.samples import value_of
from tests.tiers import sample


class Oddity(msgspec.Struct, frozen=True):
    """`id` is a kind of `gateway.demo.faults.kinds.ODDITIES`. `body` gives the pieces of the body, each sent as a chunk
    of its own, and `text` is what the client reads, `of_protobuf` what it reads of a protobuf wire where that differs.
    `holds`: the backend leaves its socket open. `gzip`: the body is compressed. `counted` is the counter that tells the
    operator."""

    id: str
    does: str
    body: Callable[[Wire], Iterable[bytes]]
    text: str
    holds: bool = False
    of_protobuf: str = ""
    counted: str = ""
    gzip: bool = False

    def pieces(self, wire: Wire) -> Iterable[bytes]:
        """The body as it is sent, head and framing apart."""
        packer = zlib.compressobj(wbits=31)
        for piece in self.body(wire):
            yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) if self.gzip else piece
        if self.gzip:
            yield packer.flush()


def _with(middle: Callable[[Wire], Iterable[bytes]]) -> Callable[[Wire], Iterable[bytes]]:
    return lambda wire: (wire.spoken.begin, *middle(wire), wire.spoken.end)


def _cut(wire: Wire) -> Iterable[bytes]:
    said = wire.said("日é".encode())
    return (said[start : start + 7] for start in range(0, len(said), 7))


LATE: Final = "gateway_late_events_total"
PROTOBUF: Final = ("proto", "protobuf")

ODDITIES: Final[tuple[Oddity, ...]] = (
    Oddity(
        "unknown",
        "ignored; the stream continues",
        _with(lambda wire: (wire.unknown, wire.spoken.text)),
        "one two",
        counted="gateway_unknown_events_total",
    ),
    Oddity(
        "utf8",
        "replaced by U+FFFD; the stream continues, and the output is always valid UTF-8",
        _with(lambda wire: (wire.said(b"a\xffb"), wire.spoken.text)),
        "onea\ufffdb two",
    ),
    Oddity(
        "split",
        "joined",
        _with(_cut),
        "one日é",
    ),
    Oddity(
        "compressed",
        "decompressed as it arrives, to at most 200 times its size, or a megabyte",
        _with(lambda wire: (wire.spoken.text,)),
        "one two",
        gzip=True,
    ),
    Oddity(
        "surrogate",
        "left out where its other half does not follow, and told (protobuf: replaced by U+FFFD); the stream continues",
        _with(lambda wire: (wire.said(wire.surrogate), wire.spoken.text)),
        "one two",
        of_protobuf="one\ufffd two",
    ),
    Oddity(
        "twice",
        "the first finish is used",
        lambda wire: (wire.spoken.begin, wire.spoken.end + wire.spoken.end),
        "one",
        counted=LATE,
    ),
    Oddity(
        "late",
        "dropped; the backend's connection is closed",
        lambda wire: (wire.spoken.begin, wire.spoken.end + wire.spoken.text),
        "one",
        counted=LATE,
    ),
    Oddity(
        "late_garbage",
        "ignored; the response is complete",
        lambda wire: (wire.spoken.begin, wire.spoken.end + wire.spoken.malformed + wire.spoken.failure),
        "one",
        counted=LATE,
    ),
    Oddity(
        "held",
        "the response ends within a second, and the socket is closed",
        lambda wire: (wire.spoken.answer,),
        "one two",
        holds=True,
    ),
    Oddity(
        "comments",
        "ignored",
        _with(lambda wire: (wire.spoken.silence * 3, wire.spoken.text, wire.spoken.silence)),
        "one two",
    ),
    Oddity(
        "unended",
        "decoded, if it is complete",
        lambda wire: (wire.spoken.begin, wire.spoken.end.rstrip()),
        "one",
    ),
)


@sample()
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("odd", ODDITIES, ids=[odd.id for odd in ODDITIES])
async def test_an_odd_answer_is_served(odd: Oddity, wire: str) -> None:
    async def script(connection: Connection) -> None:
        said = head(WIRES[wire].spoken.media_type)
        await connection.send(said.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") if odd.gzip else said)
        for piece in odd.pieces(WIRES[wire]):
            await connection.send(chunk(piece))
            await asyncio.sleep(PAUSE_S / 4)
        if odd.holds:
            await connection.gone()
        else:
            await connection.send(END)

    # The waits for what may follow an answer end within a second; the limits of silence are far away.
    assert REST_S + DRAIN_S < 1
    silent: dict[str, Json] = {**TIMEOUTS, "first_byte": 120, "idle": 120}
    async with faulty_backend(script) as backend, wire_gateway(WIRES[wire], {"m": backend}, silent) as gateway:
        async with asyncio.timeout(30):
            text = odd.of_protobuf or odd.text if wire in PROTOBUF else odd.text
            await asyncio.gather(*(_check(gateway, text, streams=streams) for streams in (False, True)))
        if odd.holds:
            async with asyncio.timeout(30):
                await backend.closed.wait()
        assert len(backend.seen) == 2
        metrics = gateway.app.gateway_state.metrics
        counted = {name for name in (LATE, "gateway_unknown_events_total") if value_of(metrics, name, "m")}
        assert counted == ({odd.counted} if odd.counted else set())


async def _check(gateway: RunningGateway, text: str, streams: bool) -> None:
    response = await gateway.chat(stream=streams)
    assert response.status_code == 200
    if streams:
        *data, done = frames(response.text)
        assert (_text(text_of(data)), finishes(data), done) == (text, ["stop"], "[DONE]")
    else:
        choice = response.json()["choices"][0]
        assert (_text(choice["message"]["content"]), choice["finish_reason"]) == (text, "stop")


def _text(said: str) -> str:
    """How many marks stand for broken bytes depends on how the wire writes text."""
    return re.sub("\ufffd+", "\ufffd", said)
