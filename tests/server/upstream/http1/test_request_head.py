"""Tests the bytes of a request head, and the values that it never contains."""

import pytest

from gateway.server.upstream.http.headers import check_header
from gateway.server.upstream.http.origin import read_url
from gateway.server.upstream.http1.request_head import encode_lines, encode_request

URL = read_url("http://host:81/v1/chat?x=1")


def test_a_request_is_one_piece() -> None:
    lines = encode_lines("POST", URL, (("user-agent", "ours"), ("Content-Type", "text/plain")))
    assert encode_request(lines, b"body") == (
        b"POST /v1/chat?x=1 HTTP/1.1\r\nhost: host:81\r\nuser-agent: ours\r\ncontent-type: text/plain\r\n"
        b"content-length: 4\r\n\r\nbody"
    )
    assert not lines.last


def test_the_later_of_two_headers_is_sent() -> None:
    lines = encode_lines("GET", URL, (("accept", "a"), ("host", "other"), ("Accept", "b")))
    assert lines.text == b"GET /v1/chat?x=1 HTTP/1.1\r\nhost: other\r\naccept: b\r\ncontent-length: "


@pytest.mark.parametrize(("value", "last"), [("close", True), ("Close", True), ("keep-alive", False)])
def test_whoever_asks_for_the_end_of_the_connection_is_known(value: str, last: bool) -> None:
    assert encode_lines("GET", URL, (("connection", value),)).last == last


@pytest.mark.parametrize("value", ["", "a b\tc", 'k:v; q="1"', "caf\xe9"])
def test_sound_headers_are_sent(value: str) -> None:
    check_header("x-one", value)
    assert b"x-one: " + value.encode("latin-1") + b"\r\n" in encode_lines("GET", URL, (("x-one", value),)).text


@pytest.mark.parametrize("end", ["\r\nx: y", "\n", "\r", "\0", "\x1f", "\x7f", "\u2028", "日"])
def test_no_value_ends_its_line(end: str) -> None:
    with pytest.raises(ValueError) as caught:
        encode_lines("GET", URL, (("authorization", f"secret{end}"),))
    assert "authorization" in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "é", "Content-Length", "transfer-encoding", "Expect"])
def test_no_other_name_is_a_header(name: str) -> None:
    with pytest.raises(ValueError):
        check_header(name, "value")
