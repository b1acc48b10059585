"""Tests the header that tells a backend how much time is left."""

import pytest

from gateway.adapter import TimeoutHeader
from gateway.server.upstream.timeout_header import timeout_header


@pytest.mark.parametrize(
    ("name", "seconds", "value"),
    [
        ("grpc-timeout", 600, "600000m"),
        ("grpc-timeout", 0.0001, "1m"),
        ("grpc-timeout", -5, "1m"),
        ("grpc-timeout", 1.2341, "1235m"),
        ("grpc-timeout", 99_999.999, "99999999m"),
        ("grpc-timeout", 100_000, "100000S"),
        ("grpc-timeout", 1e12, "99999999S"),
        ("connect-timeout-ms", 600, "600000"),
        ("connect-timeout-ms", 0, "1"),
        ("connect-timeout-ms", 1e12, "9999999999"),
    ],
)
def test_the_time_fits_the_header_and_is_never_too_short(name: TimeoutHeader, seconds: float, value: str) -> None:
    assert timeout_header(name, seconds) == (name, value)
