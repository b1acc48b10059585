"""The pytest plugin: serves a recording to a test, as the API that the code under test calls.

@pytest.mark.dragoman("tests/weather.dragoman.jsonl", upstream="https://api.example.org")
def test_weather(dragoman):
    client = OpenAI(base_url=f"{dragoman.base_url}/v1", api_key="any")

It is loaded in every run of pytest where the package is installed, and imports nothing until it is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gateway.testing.recorded_service import RecordedService

MODES = ("none", "once", "new", "all")
MARKER = (
    "dragoman(file, side='openai', match='shape', speed=0, upstream=None): serve this recording to the test as the "
    "fixture `dragoman`; --dragoman-record records what is missing from `upstream`"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dragoman")
    group.addoption(
        "--dragoman-record",
        choices=MODES,
        default="none",
        help="what to record from the upstream of a test: nothing; all where there is no file (once); what the file "
        "lacks (new); all again (all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture(name="dragoman")
def dragoman_fixture(request: pytest.FixtureRequest) -> "Iterator[RecordedService]":
    """The recording of the test's marker, served on a loopback port. `base_url`, `requests` and `fail(how, after)`
    are for the test. A request without a recorded response, and a response that nobody asked for, fail the test."""
    from gateway.testing.recorded_service import recorded_service

    marker = request.node.get_closest_marker("dragoman")
    if marker is None or len(marker.args) != 1:
        pytest.fail("the fixture dragoman needs the marker @pytest.mark.dragoman(FILE)", pytrace=False)
    path = request.config.rootpath / marker.args[0]
    mode = request.config.getoption("--dragoman-record")
    with recorded_service(path, mode, **marker.kwargs) as service:
        yield service
    if service.problem:
        pytest.fail(service.problem, pytrace=False)
