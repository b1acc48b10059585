"""Exported requests go to the gateway that they were copied from, and to nothing that a shell would run."""

import pytest

from gateway.recording.export import export
from gateway.recording.export.address import LOCAL
from tests.recording.export.test_curl import recording_of


@pytest.mark.parametrize("kind", ["curl", "python"])
@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://127.0.0.1:8123", "http://127.0.0.1:8123"),
        ("https://gateway.example", "https://gateway.example"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://$(id)", LOCAL),
        ('http://a"; id; "', LOCAL),
        ("http://a/b", LOCAL),
        ("http://a}", LOCAL),
        ("file://a", LOCAL),
    ],
)
def test_an_address_that_is_more_than_one_is_not_written(kind: str, url: str, named: str) -> None:
    written = export(recording_of(b"{}"), kind, url)
    assert named in written
    assert named == url or url not in written
