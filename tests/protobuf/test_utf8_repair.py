from hypothesis import given
from hypothesis import strategies as st

from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.protobuf.utf8_repair import repair_texts
from tests.adapters.warp.backend.script import add, mcp_call, output, reasoning


def event(text: str) -> ResponseEvent:
    made = ResponseEvent()
    made.client_actions.actions.append(add(output(text), mcp_call("k", args={"s": text, "n": 1.5}), reasoning(text)))
    return made


def test_a_right_message_needs_no_mending() -> None:
    assert repair_texts(event("ü\u2028").SerializeToString(), ResponseEvent) is None
    assert repair_texts(b"", ResponseEvent) is None


@given(st.lists(st.sampled_from([b"#", b"\xff", b"\xe2\x82", b"\xc3\xbc", b"a" * 130]), max_size=6).map(b"".join))
def test_every_bad_byte_is_replaced_and_nothing_else(raw: bytes) -> None:
    placeholder = "#" * len(raw)
    payload = event(placeholder).SerializeToString()
    broken = payload.replace(placeholder.encode(), raw) if raw else payload
    expected = event(raw.decode("utf-8", "replace"))
    mended = repair_texts(broken, ResponseEvent)
    assert ResponseEvent.FromString(broken if mended is None else mended) == expected


@given(st.binary(max_size=60))
def test_no_bytes_are_too_strange(payload: bytes) -> None:
    mended = repair_texts(payload, ResponseEvent)
    assert mended is None or repair_texts(mended, ResponseEvent) is None


def test_a_right_message_of_many_kinds_of_fields_is_kept() -> None:
    strange = b"\x80\x01\x96\x01" + b"\x85\x01\x01\x02\x03\x04" + b"\x81\x01" + b"\x00" * 8 + b"\x82\x01\x02\xff\xff"
    broken = b"\x0a\x03\x0a\x01\xff" + strange
    assert repair_texts(broken, ResponseEvent) == b"\x0a\x05\x0a\x03\xef\xbf\xbd" + strange


def test_endless_nesting_is_not_mended() -> None:
    value = b"\xff"
    for tag in b"\x1a" + b"\x32\x0a" * 200:  # Value.string_value inside ListValue.values inside Value.list_value ...
        value = bytes([tag]) + _size(len(value)) + value
    struct = b"\x12" + _size(len(value)) + value
    for tag in b"\x0a\x12\x62\x22\x12\x1a\x0a\x12":  # ... up to ResponseEvent.client_actions
        struct = bytes([tag]) + _size(len(struct)) + struct
    assert repair_texts(struct, ResponseEvent) is None


def _size(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _size(number >> 7)
