"""Law: any bytes from a backend are read, or refused as BackendProtocolError (JSON: NotJson), and nothing else."""

import base64
import json
import math

from hypothesis import given
from hypothesis import strategies as st

from adapters.warp.backend.decode.frames import FrameReader
from adapters.warp.backend.decode.output import Output
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError
from gateway.framing.base64 import decode_base64
from gateway.framing.json_text import NotJson, decode_json, repair_surrogates, repair_utf8
from gateway.framing.sse import SSEDecoder
from gateway.protobuf.utf8_repair import repair_texts
from tests.fuzz.strategies import WILD, encoded, spoiled

LIMIT = 64

LINES = st.lists(
    st.sampled_from([b"data: ", b"data:", b"data", b"\n", b"\r", b"\r\n", b":", b"event: x", b"\xef\xbb\xbf", b"\x00"])
    | st.binary(max_size=40),
    max_size=20,
).map(b"".join)


@given(pieces=st.lists(LINES, max_size=5))
def test_any_bytes_are_events_or_too_large(pieces: list[bytes]) -> None:
    decoder = SSEDecoder(LIMIT)
    events: list[bytes] = []
    try:
        for piece in pieces:
            events += decoder.feed(piece)
        if (tail := decoder.tail()) is not None:
            events.append(tail)
    except BackendProtocolError as error:
        assert error.code == "upstream_event_too_large"
    assert all(len(event) <= LIMIT for event in events)


TO_STANDARD = bytes.maketrans(b"-_", b"+/")


@given(text=st.binary(max_size=100) | st.binary(max_size=60).map(base64.b64encode).flatmap(spoiled))
def test_any_text_is_base64_or_refused(text: bytes) -> None:
    try:
        decoded = decode_base64(text, LIMIT)
    except BackendProtocolError as error:
        assert error.status == 502
        return
    assert len(decoded) <= LIMIT
    # The standard library skips what it does not know; here nothing may have been skipped but blanks.
    digits = b"".join(text.split()).rstrip(b"=")
    assert base64.b64decode(digits.translate(TO_STANDARD) + b"==") == decoded
    assert len(digits) * 3 // 4 == len(decoded)


@given(
    data=st.binary(max_size=100)
    | st.binary(max_size=60).map(base64.b64encode)
    | st.binary(max_size=60).map(bytes.hex).map(str.encode),
    accept_hex=st.booleans(),
)
def test_any_frame_is_a_message_or_refused(data: bytes, accept_hex: bool) -> None:
    try:
        event = FrameReader(LIMIT, accept_hex, Output()).read(data)
    except BackendProtocolError as error:
        assert error.status == 502
    else:
        assert event is None or event.SerializeToString() is not None


@given(payload=st.binary(max_size=100))
def test_any_payload_is_mended_or_left_alone(payload: bytes) -> None:
    mended = repair_texts(payload, ResponseEvent)
    assert mended is None or mended != payload


@given(
    data=WILD.map(encoded) | WILD.map(encoded).flatmap(spoiled) | st.binary(max_size=60),
    lenient=st.booleans(),
    depth=st.integers(0, 6),
)
def test_any_bytes_are_json_of_limited_depth_or_refused(data: bytes, lenient: bool, depth: int) -> None:
    try:
        value = decode_json(data, depth, lenient=lenient)
    except NotJson as error:
        assert error.reason
        assert lenient or not _is_sound(data, depth)
    else:
        assert _depth(value) <= depth
        assert _is_clean(value)
        if not lenient:
            assert value == json.loads(data)


def _is_sound(data: bytes, depth: int) -> bool:
    """Whether the standard library reads it, and finds nothing in it that may be refused."""
    try:
        value = json.loads(data.decode(), parse_constant=float)
    except ValueError:
        return False
    return _depth(value) <= depth and _is_clean(value)


def _depth(value: Json) -> int:
    match value:
        case dict():
            return 1 + max(map(_depth, value.values()), default=0)
        case list():
            return 1 + max(map(_depth, value), default=0)
        case _:
            return 0


def _is_clean(value: Json) -> bool:
    """Whether it can be sent on: no half characters, no numbers that JSON has not."""
    match value:
        case dict():
            return all(_is_clean(key) and _is_clean(below) for key, below in value.items())
        case list():
            return all(map(_is_clean, value))
        case str():
            return value == value.encode(errors="replace").decode()
        case float():
            return math.isfinite(value)
        case _:
            return True


@given(data=st.binary(max_size=60) | WILD.map(encoded).flatmap(spoiled))
def test_mending_ends_after_one_time(data: bytes) -> None:
    mended = repair_utf8(data)
    assert mended.decode() == repair_utf8(mended).decode()
    assert repair_surrogates(repair_surrogates(mended)) == repair_surrogates(mended)
