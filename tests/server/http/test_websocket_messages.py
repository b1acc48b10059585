"""The messages of a WebSocket: a table of hostile frames, bounds of size and inflation, and any bytes at all."""

import itertools
import struct
import zlib
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage

from gateway.server.http.websocket_deflate import BoundedDeflate, accepted_deflate
from gateway.server.http.websocket_messages import (
    MOST_FRAGMENTS,
    Begun,
    Closing,
    MessageReader,
    Received,
    Reply,
    Text,
    Violation,
    text_frames,
)
from gateway.server.http.websocket_text_fast_path import TextFastPath

MOST: Final = 64 * 1024
KEY: Final = b"\x01\x02\x03\x04"
FIN, RSV1 = 0x80, 0x40


def frame(first: int, payload: bytes = b"", *, masked: bool = True, size: int | None = None) -> bytes:
    """A frame of a client: its first byte, and its payload, of which it may say another size."""
    length = len(payload) if size is None else size
    mask = 0x80 if masked else 0
    if length < 126:
        head = bytes([first, mask | length])
    elif length < 2**16:
        head = bytes([first, mask | 126]) + struct.pack("!H", length)
    else:
        head = bytes([first, mask | 127]) + struct.pack("!Q", length)
    if not masked:
        return head + payload
    return head + KEY + bytes(byte ^ KEY[at % 4] for at, byte in enumerate(payload))


def deflated(data: bytes) -> bytes:
    machine = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (machine.compress(data) + machine.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\x00\x00\xff\xff")


def dependent(data: bytes) -> list[bytes]:
    """Two messages of one text, the second of which refers to the first."""
    machine = zlib.compressobj(9, zlib.DEFLATED, -15)
    sent = [machine.compress(data) + machine.flush(zlib.Z_SYNC_FLUSH) for _ in range(2)]
    return [one.removesuffix(b"\x00\x00\xff\xff") for one in sent]


def deflate(most: int = MOST) -> BoundedDeflate:
    extension, _ = accepted_deflate([b"permessage-deflate"], most)
    assert extension is not None
    return extension


def read(data: bytes, extension: BoundedDeflate | None = None, piece: int = 1 << 20) -> list[Received]:
    reader = MessageReader(MOST, extension)
    return [one for at in range(0, len(data), piece) for one in reader.feed(data[at : at + piece])]


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_a_message_in_any_pieces_is_one_text(piece: int) -> None:
    data = frame(0x01, "Grü".encode()[:-1]) + frame(0x89, b"are you there") + frame(FIN, "Grü".encode()[-1:] + b"!")
    found = [one for one in read(data, piece=piece) if not isinstance(one, Begun)]
    assert found == [Reply(b"\x8a\x0dare you there"), Text("Grü!")]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_compressed_message_is_inflated_also_around_a_ping_and_without_context(piece: int) -> None:
    one = deflated(b"hello " * 500)
    data = frame(0x01 | RSV1, one[:5]) + frame(0x89) + frame(FIN, one[5:])
    data += frame(0x81, b"plain") + frame(0x89) + frame(FIN | RSV1 | 0x01, deflated(b"again"))
    found = [one for one in read(data, deflate(), piece) if isinstance(one, Text)]
    assert found == [Text("hello " * 500), Text("plain"), Text("again")]


def test_a_last_block_may_say_that_it_is_the_last() -> None:
    machine = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = machine.compress(b"hello") + machine.flush(zlib.Z_FINISH) + b"\x00"
    assert read(frame(FIN | RSV1 | 0x01, data), deflate()) == [Text("hello")]


HOSTILE: Final[dict[str, tuple[bytes, int]]] = {
    "binary": (frame(0x82, b"x"), 1003),
    "binary without an end": (frame(0x02, b"x"), 1003),
    "not masked": (frame(0x81, b"x", masked=False), 1002),
    "an unknown opcode": (frame(0x83, b"x"), 1002),
    "an unknown control frame": (frame(0x8B), 1002),
    "a reserved bit": (frame(0x81 | 0x20, b"x"), 1002),
    "compressed without the extension": (frame(0x81 | RSV1, b"x"), 1002),
    "a continuation of nothing": (frame(FIN, b"x"), 1002),
    "a message within a message": (frame(0x01, b"x") + frame(0x81, b"y"), 1002),
    "a ping in fragments": (frame(0x09), 1002),
    "a long ping": (frame(0x89, b"x" * 126), 1002),
    "a length of more bytes than needed": (b"\x81\xfe\x00\x01" + KEY + b"x", 1002),
    "a length with the highest bit": (b"\x81\xff" + b"\xff" * 8 + KEY, 1002),
    "not UTF-8": (frame(0x81, b"\xff"), 1007),
    "half a character": (frame(0x81, "ü".encode()[:1]), 1007),
    "a surrogate": (frame(0x81, b"\xed\xa0\x80"), 1007),
    "too large": (frame(0x81, b"x" * (MOST + 1)), 1009),
    "too large in fragments": (frame(0x01, b"x" * MOST) + frame(0x00, b"x"), 1009),
    "fragments without end": (frame(0x01) + frame(0x00) * MOST_FRAGMENTS, 1009),
    "a close of one byte": (frame(0x88, b"x"), 1002),
    "a close with a code that nobody sends": (frame(0x88, struct.pack("!H", 1006)), 1002),
    "a close whose reason is no text": (frame(0x88, struct.pack("!H", 1000) + b"\xff"), 1007),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frames_end_the_connection_with_a_code(name: str) -> None:
    data, code = HOSTILE[name]
    found = read(data + frame(0x81, b"not read"))
    assert isinstance(found[-1], Violation) and found[-1].code == code and found[-1].reason
    assert not any(isinstance(one, Text) for one in found)


TWICE: Final = deflated(b"x" * (2 * MOST))
DEPENDENT: Final = dependent(b"some long text of which the next message has all")
BOMBS: Final[dict[str, tuple[bytes, int]]] = {
    "a thousand times": (frame(FIN | RSV1 | 0x01, deflated(b"x" * (64 * MOST))), 1009),
    "in fragments": (frame(0x01 | RSV1, TWICE[:20]) + frame(FIN, TWICE[20:]), 1009),
    "one byte more": (frame(FIN | RSV1 | 0x01, deflated(b"x" * (MOST + 1))), 1009),
    "no deflate": (frame(FIN | RSV1 | 0x01, b"\xff\xff\xff"), 1007),
    "something behind its last block": (frame(FIN | RSV1 | 0x01, b"\x03\x00" + b"more"), 1007),
    "a compressed continuation": (frame(0x01, b"x") + frame(FIN | RSV1, deflated(b"x")), 1002),
    "a compressed ping": (frame(0x89 | RSV1, deflated(b"x")), 1002),
    "the context of the message before": (
        frame(FIN | RSV1 | 0x01, DEPENDENT[0]) + frame(FIN | RSV1 | 0x01, DEPENDENT[1]),
        1007,
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_the_connection_before_they_are_inflated(name: str) -> None:
    data, code = BOMBS[name]
    found = read(data, deflate(), 512)
    assert isinstance(found[-1], Violation) and found[-1].code == code


def test_a_message_of_the_largest_size_passes() -> None:
    assert read(frame(0x81, b"x" * MOST)) == [Text("x" * MOST)]
    assert read(frame(FIN | RSV1 | 0x01, deflated(b"x" * MOST)), deflate()) == [Text("x" * MOST)]


def test_what_a_bomb_inflates_to_is_bounded_by_what_was_sent() -> None:
    """With room for a large message, too: beyond the first MiB by the ratio."""
    data = deflated(b"x" * (16 << 20))
    reader = MessageReader(1 << 30, deflate(1 << 30))
    found = list(reader.feed(frame(FIN | RSV1 | 0x01, data)))
    assert len(data) * 200 + (1 << 20) < 16 << 20
    assert [type(one) for one in found] == [Violation]


OFFERS: Final[dict[bytes, bytes | None]] = {
    b"permessage-deflate": b"permessage-deflate; client_no_context_takeover; server_no_context_takeover",
    b"x-webkit-deflate-frame, permessage-deflate; client_max_window_bits": (
        b"permessage-deflate; client_no_context_takeover; server_no_context_takeover; client_max_window_bits=15"
    ),
    b"permessage-deflate; client_max_window_bits=10": (
        b"permessage-deflate; client_no_context_takeover; server_no_context_takeover; client_max_window_bits=10"
    ),
    b"permessage-deflate; client_max_window_bits=8": None,
    b"permessage-deflate; client_max_window_bits=many": None,
    b"permessage-bzip2": None,
    b"": None,
}


@pytest.mark.parametrize("offer", OFFERS)
def test_an_offer_is_accepted_without_context_or_not_at_all(offer: bytes) -> None:
    extension, header = accepted_deflate([offer], MOST)
    assert (header or None) == OFFERS[offer]
    assert (extension is None) is (OFFERS[offer] is None)


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_a_client_reads_the_frames_of_texts(size: int) -> None:
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(text_frames([b"x" * size, b"y"]))
    assert [event.data for event in client.events() if isinstance(event, TextMessage)] == ["x" * size, "y"]


def test_the_close_of_either_side_is_answered_once() -> None:
    reader = MessageReader(MOST)
    [closing] = reader.feed(frame(0x88, struct.pack("!H", 1000)))
    assert closing == Closing(1000)
    assert reader.close(1000, "") == b"\x88\x02\x03\xe8"
    assert reader.close(1000, "") == b""
    reader = MessageReader(MOST)
    assert reader.close(1001, "done") == b"\x88\x06\x03\xe9done"
    assert list(reader.feed(frame(0x88, struct.pack("!H", 1001)))) == [Closing(1001)]
    assert list(reader.feed(frame(0x81, b"late"))) == []


def test_a_ping_behind_the_close_of_the_server_is_not_answered() -> None:
    reader = MessageReader(MOST)
    reader.close(1001, "done")
    assert list(reader.feed(frame(0x89, b"on its way") + frame(0x88, struct.pack("!H", 1001)))) == [Closing(1001)]


def _frames() -> st.SearchStrategy[bytes]:
    payloads = st.one_of(st.binary(max_size=200), st.text(max_size=60).map(str.encode), st.binary().map(deflated))
    plain = st.builds(frame, st.integers(0, 255), payloads, masked=st.booleans())
    lying = st.builds(frame, st.integers(0, 255), payloads, size=st.integers(0, 2**63 - 1))
    good = st.builds(frame, st.sampled_from([0x81, 0x01, 0x00, 0x80, 0x89, 0x8A, 0xC1]), payloads)
    return st.one_of(plain, lying, good, good, st.binary(max_size=40))


def _pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for begin, end in itertools.pairwise(places):
        yield data[begin:end]


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(_frames(), max_size=12).map(b"".join), st.lists(st.integers(0, 5000), max_size=6), st.booleans())
def test_any_bytes_are_messages_or_one_violation_whatever_their_cuts(
    data: bytes, cuts: list[int], compresses: bool
) -> None:
    def messages(reader: MessageReader, pieces: Iterator[bytes]) -> list[Received]:
        found = [one for piece in pieces for one in reader.feed(piece)]
        for one in found[:-1]:
            assert isinstance(one, Text | Begun | Reply)
        return [one for one in found if not isinstance(one, Begun)]

    whole = messages(MessageReader(MOST, deflate() if compresses else None), iter([data] if data else []))
    cut = messages(MessageReader(MOST, deflate() if compresses else None), _pieces(data, cuts))
    assert whole == cut


@given(st.text(max_size=300), st.booleans())
def test_what_wsproto_sends_is_read(text: str, pings: bool) -> None:
    client = Connection(ConnectionType.CLIENT)
    data = client.send(TextMessage(text[:100], message_finished=False))
    data += client.send(Ping(b"p")) if pings else b""
    data += client.send(TextMessage(text[100:])) + client.send(CloseConnection(1000))
    found = [one for one in read(data) if isinstance(one, Text | Closing)]
    assert found == [Text(text), Closing(1000)]


def _joined(frames: list[bytes], joins: list[bool]) -> list[bytes]:
    """Returns the frames as they are received, some of them together with the one before."""
    pieces: list[bytes] = []
    for number, one in enumerate(frames):
        if pieces and joins[number : number + 1] == [True]:
            pieces[-1] += one
        else:
            pieces.append(one)
    return pieces


@settings(max_examples=2 * settings().max_examples)
@given(
    st.lists(_frames(), max_size=8),
    st.lists(st.booleans(), max_size=8),
    st.none() | st.lists(st.integers(0, 5000), max_size=6),
    st.integers(0, 300),
    st.booleans(),
)
def test_messages_in_any_frames_and_pieces_are_read_as_wsproto_reads_them(
    frames: list[bytes], joins: list[bool], cuts: list[int] | None, most: int, compresses: bool
) -> None:
    pieces = _joined(frames, joins) if cuts is None else [*_pieces(b"".join(frames), cuts)]

    def found() -> list[Received]:
        reader = MessageReader(most, deflate() if compresses else None)
        return [one for piece in pieces for one in reader.feed(piece)]

    read_here = found()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextFastPath, "read", lambda _, __: None)
        assert read_here == found()


@pytest.mark.parametrize("before", [b"", frame(0x89), frame(0x8A), frame(0x01, b"a") + frame(0x80, b"b")])
@pytest.mark.parametrize("size", [0, 125, 126, 9000])
def test_a_message_in_one_frame_is_read_without_wsproto(before: bytes, size: int) -> None:
    fast_path = TextFastPath(MOST)
    # What was read elsewhere may have come in any pieces that hold the heads of its frames.
    fast_path.follow(before[:4])
    fast_path.follow(before[4:])
    assert fast_path.read(frame(0x81, b"x" * size)) == "x" * size


@pytest.mark.parametrize("before", [frame(0x01, b"a"), frame(0x81, b"a")[:-1], frame(0x81, b"a" * 200)[:3]])
def test_a_message_is_not_read_where_another_is_open(before: bytes) -> None:
    fast_path = TextFastPath(MOST)
    fast_path.follow(before)
    assert fast_path.read(frame(0x81, b"x")) is None
