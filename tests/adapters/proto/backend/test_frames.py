"""Each carrier splits a body into messages, and tells a fault from an end."""

import base64
from collections.abc import Iterator

import pytest

from adapters.proto.backend.frames import (
    END,
    ConnectFrames,
    End,
    Frames,
    FramesFactory,
    GrpcWebFrames,
    GrpcWebTextFrames,
    SSEBase64Frames,
    U32Frames,
    VarintFrames,
    WholeBody,
)
from gateway.core.errors import BackendError
from gateway.testing.replay import cuttings
from tests.adapters.proto.backend import services

MESSAGES = [b"one", b"", b"\x00" * 200]
LIMIT = 256


def split(frames: Frames, pieces: list[bytes]) -> Iterator[bytes | End]:
    for piece in pieces:
        yield from frames.feed(piece)
    yield from frames.end()


@pytest.mark.parametrize(
    ("factory", "wire", "found"),
    [
        (VarintFrames, services.frames_varint(MESSAGES), MESSAGES),
        (U32Frames, services.frames_u32(MESSAGES), MESSAGES),
        (GrpcWebFrames, services.grpc_web(MESSAGES), [*MESSAGES, END]),
        (GrpcWebTextFrames, services.grpc_web_text(MESSAGES), [*MESSAGES, END]),
        (GrpcWebTextFrames, base64.b64encode(services.grpc_web(MESSAGES)), [*MESSAGES, END]),
        (ConnectFrames, services.connect(MESSAGES), [*MESSAGES, END]),
        (SSEBase64Frames, services.sse_base64([b"one", b"two"]) + b"data: [DONE]\n\n", [b"one", b"two", END]),
        (WholeBody, b"one", [b"one"]),
        (WholeBody, b"", []),
    ],
)
def test_a_body_is_split_however_it_is_cut(factory: FramesFactory, wire: bytes, found: list[bytes | End]) -> None:
    for pieces in cuttings(wire):
        assert list(split(factory(LIMIT), pieces)) == found


@pytest.mark.parametrize(
    ("factory", "wire", "before", "code"),
    [
        (VarintFrames, b"\x03one\x81\x02", [b"one"], "upstream_event_too_large"),
        (VarintFrames, b"\xff\xff\xff\xff\xff", [], "upstream_invalid_event"),
        (VarintFrames, b"\x03on", [], "upstream_stream_truncated"),
        (U32Frames, b"\x00\x00\x01\x01", [], "upstream_event_too_large"),
        (U32Frames, b"\x00\x00\x00\x03on", [], "upstream_stream_truncated"),
        (GrpcWebFrames, services.envelope(b"one", 1), [], "upstream_invalid_event"),
        (GrpcWebFrames, services.envelope(b"one") + services.envelope(b"", 2), [b"one"], "upstream_invalid_event"),
        (GrpcWebFrames, b"\x00\xff\xff\xff\xff", [], "upstream_event_too_large"),
        (GrpcWebFrames, services.envelope(b"grpc-message: x", 0x80), [], "upstream_stream_truncated"),
        (GrpcWebFrames, services.envelope(b"grpc-status: 13", 0x80), [], "upstream_error"),
        (GrpcWebTextFrames, b"AAAA*AAA", [], "upstream_invalid_event"),
        (GrpcWebTextFrames, b"AAA", [], "upstream_stream_truncated"),
        (ConnectFrames, services.envelope(b"[", 2), [], "upstream_invalid_event"),
        (ConnectFrames, services.envelope(b"[]", 2), [], "upstream_invalid_event"),
        (ConnectFrames, services.envelope(b'{"error": {"code": "unavailable"}}', 2), [], "upstream_overloaded"),
        (ConnectFrames, services.envelope(b'{"error": 7}', 2), [], "upstream_error"),
        (SSEBase64Frames, b"data: b25l\n\ndata: *\n\n", [b"one"], "upstream_invalid_event"),
        (SSEBase64Frames, b"data: b25", [], "upstream_stream_truncated"),
        (WholeBody, b"x" * (4 * LIMIT + 1), [], "upstream_response_too_large"),
    ],
)
def test_a_fault_is_told_behind_what_preceded_it(
    factory: FramesFactory, wire: bytes, before: list[bytes], code: str
) -> None:
    for pieces in cuttings(wire):
        found: list[bytes | End] = []
        with pytest.raises(BackendError) as failed:
            found.extend(split(factory(LIMIT), pieces))
        assert failed.value.code == code
        assert [frame for frame in split_until_fault(factory, pieces)] == before


def split_until_fault(factory: FramesFactory, pieces: list[bytes]) -> Iterator[bytes | End]:
    try:
        yield from split(factory(LIMIT), pieces)
    except BackendError:
        return
