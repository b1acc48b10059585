import base64
import binascii
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.warp.backend.decode.decoder import WarpDecoder
from adapters.warp.backend.decode.frames import FrameReader
from adapters.warp.backend.decode.output import Output
from adapters.warp.backend.options import WarpOptions
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, BackendProtocolError
from gateway.core.events import Finish, ResponseStart, TextDelta
from gateway.protobuf.utf8_repair import MOST_FIELDS
from gateway.testing.events import fold, join
from tests.adapters.warp.backend.script import GOLDEN, add, decode, frame, golden, output, rules

LIMIT = 1 << 16


def read_frame(data: bytes, limit: int, accept_hex: bool) -> ResponseEvent | None:
    return FrameReader(limit, accept_hex, Output()).read(data)


# An event whose base64 has every troublesome character: - and _, and two signs of padding.
EVENT = ResponseEvent(
    client_actions={
        "actions": [{"add_messages_to_task": {"task_id": "t1", "messages": [output("\x7f~\x7f~??>>ü¿ÿ!!")]}}]
    }
)
RAW = EVENT.SerializeToString()
URLSAFE, STANDARD = base64.urlsafe_b64encode(RAW), base64.b64encode(RAW)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_golden_event_is_read_and_written_back(name: str) -> None:
    event = read_frame(GOLDEN[name].encode(), LIMIT, accept_hex=False)
    assert event is not None
    assert base64.urlsafe_b64encode(event.SerializeToString()).decode() == GOLDEN[name]


@pytest.mark.parametrize(
    "data",
    [
        URLSAFE,
        STANDARD,
        URLSAFE.rstrip(b"="),
        STANDARD.rstrip(b"="),
        b'"' + URLSAFE + b'"',
        b" " + URLSAFE + b"  ",
        URLSAFE[:20] + b"\n" + URLSAFE[20:41] + b"\n" + URLSAFE[41:],
    ],
)
def test_every_variant_of_the_text_is_the_same_event(data: bytes) -> None:
    assert read_frame(data, LIMIT, accept_hex=False) == EVENT
    assert read_frame(data, LIMIT, accept_hex=True) == EVENT


@pytest.mark.parametrize(
    "data", [binascii.hexlify(RAW), binascii.hexlify(RAW).upper(), b'"' + binascii.hexlify(RAW) + b'"']
)
def test_hexadecimal_is_read_only_when_it_is_accepted(data: bytes) -> None:
    assert read_frame(data, LIMIT, accept_hex=True) == EVENT
    with contextlib.suppress(BackendProtocolError):
        assert read_frame(data, LIMIT, accept_hex=False) != EVENT


@given(st.text(min_size=1, max_size=30))
def test_accepting_hexadecimal_never_misreads_base64(text: str) -> None:
    event = ResponseEvent(init={"conversation_id": text})
    for raw in (event.SerializeToString(), EVENT.SerializeToString()):
        expected = ResponseEvent.FromString(raw)
        assert read_frame(base64.urlsafe_b64encode(raw), LIMIT, accept_hex=True) == expected
        assert read_frame(binascii.hexlify(raw), LIMIT, accept_hex=True) == expected


@pytest.mark.parametrize("data", [b"", b" ", b'""', b"[DONE]", b" [DONE]\n"])
def test_no_data_and_the_openai_sentinel_are_no_event(data: bytes) -> None:
    assert read_frame(data, LIMIT, accept_hex=False) is None


@pytest.mark.parametrize(
    "data",
    [b"%%%", b"_w==", b"/w==", b"EhgKFhoUCgJ0MRIOCgJtMRoECgJI", b"{}", b"0xff", b"0afff", b"0aff00", b"\xff\xfe"],
)
@pytest.mark.parametrize("accept_hex", [False, True])
def test_what_is_no_event_is_a_protocol_error(data: bytes, accept_hex: bool) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        read_frame(data, LIMIT, accept_hex)
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_event")


@pytest.mark.parametrize(
    ("raw", "text"), [(b"a\xff", "a\ufffd"), (b"\xe2\x82", "\ufffd"), (b"\xed\xa0\xbd!", "\ufffd" * 3 + "!")]
)
def test_text_that_is_not_utf_8_is_mended_with_a_notice(raw: bytes, text: str) -> None:
    added = add(output("#" * len(raw)), output("next", "m2")).SerializeToString().replace(b"#" * len(raw), raw)
    wire = golden("init") + b"data:" + base64.b64encode(_field(0x12, _field(0x0A, added))) + b"\n\n" + golden("done")
    events = decode(wire)
    assert fold(events).text == text + "next"
    assert rules(events) == ["TEXT_MENDED"]


@pytest.mark.parametrize(
    "broken", [b"\x0a\x05\x0a\x01\xff", b"\x0a\x04\x0a\x01\xff\x07", b"\xff" * 20, b"\x0a\x04\x0a\x01\xff\x0d"]
)
def test_what_is_broken_elsewhere_is_not_mended(broken: bytes) -> None:
    with pytest.raises(BackendProtocolError):
        read_frame(base64.b64encode(broken), LIMIT, accept_hex=False)


def test_a_large_broken_text_is_mended_and_a_broken_event_of_many_fields_is_not() -> None:
    broken = _field(0x0A, _field(0x0A, b"\xff" * 70_000))
    event = read_frame(base64.b64encode(broken), 1 << 20, accept_hex=False)
    assert event is not None and event.init.conversation_id == "\ufffd" * 70_000
    for fields in (b"\xf8\x07\x01" * MOST_FIELDS, _field(0xA2, b"\x01") * MOST_FIELDS):
        with pytest.raises(BackendProtocolError):
            read_frame(base64.b64encode(fields + broken), 1 << 20, accept_hex=False)


def test_the_notice_of_a_malformed_event_shows_nothing_of_it() -> None:
    with pytest.raises(BackendProtocolError) as caught:
        read_frame(b"secret words", LIMIT, accept_hex=False)
    (notice,) = caught.value.notices
    assert "12 bytes" in notice.detail
    assert "secret" not in notice.detail + caught.value.message


@pytest.mark.parametrize(("depth", "readable"), [(10, True), (1000, False)])
def test_endless_nesting_is_a_protocol_error(depth: int, readable: bool) -> None:
    value = b""
    for _ in range(depth):
        value = _field(0x32, _field(0x0A, value))  # Value.list_value, ListValue.values
    struct = _field(0x0A, _field(0x0A, b"k") + _field(0x12, value))
    message = _field(0x22, _field(0x62, _field(0x12, struct)))  # Message.tool_call.call_mcp_tool.args
    wire = base64.b64encode(_field(0x12, _field(0x0A, _field(0x1A, _field(0x12, message)))))
    if readable:
        event = read_frame(wire, LIMIT, accept_hex=False)
        assert event is not None
        (action,) = event.client_actions.actions
        assert "k" in action.add_messages_to_task.messages[0].tool_call.call_mcp_tool.args.fields
    else:
        with pytest.raises(BackendProtocolError):
            read_frame(wire, LIMIT, accept_hex=False)


def _field(tag: int, payload: bytes) -> bytes:
    size, length = b"", len(payload)
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([tag]) + size + bytes([length]) + payload


@given(data=st.binary(max_size=80), accept_hex=st.booleans())
def test_arbitrary_data_raise_nothing_else(data: bytes, accept_hex: bool) -> None:
    for text in (data, base64.b64encode(data)):
        try:
            read_frame(text, LIMIT, accept_hex)
        except BackendError as error:
            assert error.status == 502


PLAIN = golden("init", "create_task", "begin", "add", "append", "commit", "done")


@pytest.mark.parametrize(
    "wire",
    [
        PLAIN,
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r"),
        PLAIN.replace(b"data:", b"data: "),
        PLAIN.replace(b"=", b""),
        PLAIN.replace(b"event:data\n", b": keep-alive\n"),
        PLAIN.replace(b"event:data\n", b"event: data\nid: 7\nretry: 1\n"),
        PLAIN.replace(b"data:Ei4K", b"data:Ei4K\ndata:"),
        PLAIN + b"data: [DONE]\n\n",
        PLAIN.removesuffix(b"\n\n"),
    ],
)
def test_every_framing_gives_the_same_answer(wire: bytes) -> None:
    events = join(decode(wire))
    assert events[:3] == [ResponseStart("r1"), TextDelta("Hello"), Finish("stop", "done")]


@pytest.mark.parametrize("size", [1000, 4000])
def test_an_event_that_is_too_large_fails_even_when_frames_may_be_skipped(size: int) -> None:
    decoder = WarpDecoder(WarpOptions(strict_frames=False), Conversation(()), 512)
    with pytest.raises(BackendProtocolError) as caught:
        decoder.feed(frame(ResponseEvent(init={"conversation_id": "x" * size})))
    assert caught.value.code == "upstream_event_too_large"
