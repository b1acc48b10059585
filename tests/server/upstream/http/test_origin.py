"""Tests valid base URLs and their parts."""

import pytest

from gateway.server.upstream.http.origin import Origin, read_url


@pytest.mark.parametrize(
    ("text", "address", "authority", "path"),
    [
        ("http://host", Origin("host", 80, False), "host", "/"),
        ("https://Host/v1/chat?a=b", Origin("host", 443, True), "host", "/v1/chat?a=b"),
        ("http://host:80/", Origin("host", 80, False), "host", "/"),
        ("https://host:80/", Origin("host", 80, True), "host:80", "/"),
        ("http://127.0.0.1:8080/a", Origin("127.0.0.1", 8080, False), "127.0.0.1:8080", "/a"),
        ("http://[::1]:8080/a", Origin("::1", 8080, False), "[::1]:8080", "/a"),
        ("https://[2001:db8::1]", Origin("2001:db8::1", 443, True), "[2001:db8::1]", "/"),
        ("http://bücher.example/é b%20c", Origin("xn--bcher-kva.example", 80, False), "xn--bcher-kva.example", None),
    ],
)
def test_a_url_is_read(text: str, address: Origin, authority: str, path: str | None) -> None:
    url = read_url(text)
    assert (url.address, url.address.authority) == (address, authority)
    assert url.path == (path or "/%C3%A9%20b%20c")
    assert read_url(str(url)) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host/path",
        "ftp://host",
        "http://",
        "http://:80/",
        "http://me:secret@host/",
        "http://me@host/",
        "http://host:99999/",
        "http://host:port/",
        "http://a..b/",
        f"http://{'a' * 70}/",
        "http://[::1/",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_url(text)
    assert "secret" not in str(caught.value)
