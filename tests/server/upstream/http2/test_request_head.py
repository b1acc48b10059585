"""Tests the fields of a request over HTTP/2."""

import pytest

from gateway.server.upstream.http.origin import read_url
from gateway.server.upstream.http2.request_head import encode_fields, encode_http2_request

URL = read_url("https://host:81/v1/chat?x=1")


def test_pseudo_fields_come_first_and_what_concerns_http1_is_left_out() -> None:
    head = encode_fields("POST", URL, (("Accept", "a"), ("Connection", "close"), ("keep-alive", "1"), ("accept", "b")))
    request = encode_http2_request(head, b"body", (("traceparent", "00"),))
    assert request.fields == (
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":authority", b"host:81"),
        (b":path", b"/v1/chat?x=1"),
        (b"accept", b"b"),
        (b"te", b"trailers"),
        (b"traceparent", b"00"),
    )
    assert request.body == b"body" and head.names >= {"accept", "host"}


@pytest.mark.parametrize(
    ("name", "value"), [("te", "gzip"), (":path", "/"), ("x", "a\r\nb: c"), ("content-length", "1")]
)
def test_no_field_can_be_forged(name: str, value: str) -> None:
    with pytest.raises(ValueError):
        encode_fields("GET", URL, ((name, value),))


def test_a_credential_is_not_shown() -> None:
    assert "secret" not in repr(encode_fields("GET", URL, (("authorization", "secret"),)))
