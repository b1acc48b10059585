"""Tests the URL of a server: all that it can say, and errors that do not show its password."""

from pathlib import Path

import pytest

from gateway.core.errors import SettingsError
from gateway.server.state.valkey.address import ServerAddress, read_address
from gateway.server.state.valkey.store import ValkeyStore


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
        ("valkey://u:secret@cache:port", "its host, port or query cannot be read"),
        ("valkey://u:secret@[::1", "its host, port or query cannot be read"),
        ("valkey://u:secret@cache?ssl_cert_reqs=none", "'ssl_cert_reqs'"),
        ("valkey://u:secret@cache?secret", "its host, port or query cannot be read"),
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as raised:
        read_address(url)
    assert "secret" not in str(raised.value)


def test_no_text_of_an_address_shows_its_password() -> None:
    address = read_address("rediss://u:secret@[::1]:7/2")
    assert str(address) == "valkeys://[::1]:7/2"
    assert "secret" not in repr(address) + f"{address!r:>3}"


def test_a_file_without_certificates_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("no certificate")
    for name, why in (("empty.pem", "holds no certificates that can be read"), ("none.pem", "cannot be read: No such")):
        with pytest.raises(SettingsError) as raised:
            ValkeyStore(read_address(f"rediss://cache?ca_file={tmp_path / name}"), lambda *_: None)
        path = str(tmp_path / name)
        assert raised.value.message.startswith(f"state.store: ca_file {path!r} {why}")
        assert "_ssl.c" not in raised.value.message
