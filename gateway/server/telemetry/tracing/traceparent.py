"""Decodes and encodes the header `traceparent`, the caller's position in a trace (W3C Trace Context, version 00)."""

import re
from collections.abc import Container
from typing import Final, NamedTuple

_FORM: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = 1


class Parent(NamedTuple):
    """A span of another process. `sampled` says whether its trace is recorded."""

    trace_id: int
    span_id: int
    sampled: bool


def decode_traceparent(header: bytes | None) -> Parent | None:
    """Returns the caller's span; None for a header that is missing or invalid, which begins a new trace.

    A later version than ours is read as 00, and may have more fields after it (section 4.3 of the recommendation)."""
    found = _FORM.fullmatch(header or b"")
    if found is None or found[1] == b"ff" or (found[1] == b"00" and found[5] is not None):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return Parent(trace_id, span_id, bool(int(found[4], 16) & _SAMPLED))


def encode_traceparent(parent: Parent) -> str:
    """Returns the header that makes this span the caller."""
    return f"00-{parent.trace_id:032x}-{parent.span_id:016x}-{int(parent.sampled):02x}"


def traceparent_header(traceparent: str, names: Container[str]) -> tuple[tuple[str, str], ...]:
    """Returns the header for a request with these names of headers; empty when it has one already, as the settings may
    set it."""
    return () if "traceparent" in names else (("traceparent", traceparent),)
