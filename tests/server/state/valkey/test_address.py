"""Tests the URL of a server: all that it can say, and errors that do not show its password."""

import pytest

from gateway.core.errors import SettingsError
from gateway.server.state.valkey.address import ServerAddress, read_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("valkey://cache", ServerAddress("cache")),
        ("redis://10.0.0.7:6380/3", ServerAddress("10.0.0.7", 6380, 3)),
        ("valkey://[::1]:7/", ServerAddress("::1", 7)),
        ("redis://:p%40ss@cache", ServerAddress("cache", password="p@ss")),
        ("valkey://u:p@cache", ServerAddress("cache", username="u", password="p")),
        ("valkeys://cache", ServerAddress("cache", tls=True)),
        ("rediss://cache?ca_file=/etc/ca.pem", ServerAddress("cache", tls=True, ca_file="/etc/ca.pem")),
    ],
)
def test_every_part_is_read(url: str, address: ServerAddress) -> None:
    assert read_address(url) == address


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://u:secret@cache", "scheme"),
        ("valkey://u:secret@", "no host"),
        ("valkey://u:secret@cache/db", "number of a database"),
        ("valkey://u:secret@cache:port", "ort"),
        ("valkey://u:secret@cache?ssl_cert_reqs=none", "'ssl_cert_reqs'"),
        ("valkey://u:secret@cache?secret", "query"),
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as raised:
        read_address(url)
    assert "secret" not in str(raised.value).replace("?secret", "") or why == "query"


def test_no_text_of_an_address_shows_its_password() -> None:
    address = read_address("rediss://u:secret@[::1]:7/2")
    assert str(address) == "valkeys://[::1]:7/2"
    assert "secret" not in repr(address) + f"{address!r:>3}"
