"""Decodes and encodes the header of W3C Trace Context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.telemetry.tracing.traceparent import Parent, decode_traceparent, encode_traceparent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
ids = st.integers(1, 2**64 - 1)


@given(st.integers(1, 2**128 - 1), ids, st.booleans())
def test_what_is_written_is_read(trace_id: int, span_id: int, sampled: bool) -> None:
    parent = Parent(trace_id, span_id, sampled)
    header = encode_traceparent(parent)
    assert len(header) == 55
    assert decode_traceparent(header.encode()) == parent


@given(st.binary(max_size=80))
def test_anything_else_begins_a_new_trace(header: bytes) -> None:
    found = decode_traceparent(header)
    assert found is None or (0 < found.trace_id < 2**128 and 0 < found.span_id < 2**64)


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-02", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"01-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True),
    ],
)
def test_headers_that_hold(header: str, sampled: bool) -> None:
    assert decode_traceparent(header.encode()) == Parent(int(TRACE, 16), int(SPAN, 16), sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01-",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE}-{SPAN}-zz",
    ],
)
def test_headers_that_do_not(header: str) -> None:
    assert decode_traceparent(header.encode()) is None


def test_no_header() -> None:
    assert decode_traceparent(None) is None
