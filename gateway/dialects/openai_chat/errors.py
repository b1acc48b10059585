"""A GatewayError in, the OpenAI error answer or the one error frame of a broken stream out."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gateway.errors import GatewayError


class ErrorAnswer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def encode_error(error: GatewayError) -> ErrorAnswer:
    """The answer while no byte has been sent. Violations, when there are any, stand beside its message."""
    headers = {"content-type": "application/json", **error.headers}
    return ErrorAnswer(error.status, headers, msgspec.json.encode(error.body()))


def encode_error_frame(error: GatewayError) -> bytes:
    """The one event that ends a stream which had already begun. No `[DONE]` may follow: that would say success."""
    return b"data: " + msgspec.json.encode(error.body()) + b"\n\n"
