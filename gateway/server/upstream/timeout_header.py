"""Encodes the time that a backend has left for its response, as a header.

Sources: gRPC, "gRPC over HTTP2" (`grpc-timeout`); Connect protocol reference (`connect-timeout-ms`).
"""

import math
from typing import Final

from gateway.adapter import TimeoutHeader

# `grpc-timeout` has at most eight digits and a unit, `connect-timeout-ms` at most ten digits.
_MOST_GRPC: Final = 10**8 - 1
_MOST_CONNECT: Final = 10**10 - 1


def timeout_header(name: TimeoutHeader, seconds: float) -> tuple[str, str]:
    """Returns the header that grants so much time, rounded up: the gateway's own deadline passes first."""
    milliseconds = max(1, math.ceil(seconds * 1000))
    if name == "connect-timeout-ms":
        return name, str(min(milliseconds, _MOST_CONNECT))
    if milliseconds <= _MOST_GRPC:
        return name, f"{milliseconds}m"
    return name, f"{min(math.ceil(seconds), _MOST_GRPC)}S"
