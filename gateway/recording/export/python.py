"""Writes the requests of a recording as Python: a script that sends them again, and a test that runs them offline."""

from collections.abc import Iterator
from typing import Final

from gateway.recording.export.curl import LOCAL, SENT_HEADERS
from gateway.recording.lines import RecordingError
from gateway.recording.recording import Interaction, Recording, write_recording

_WIDTH: Final = 100
_SCRIPT: Final = '''"""Sends {count} recorded to a gateway: python FILE. DRAGOMAN_URL and DRAGOMAN_KEY name it."""

import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("DRAGOMAN_URL", "{url}")
KEY = os.environ.get("DRAGOMAN_KEY", "")
REQUESTS = [
{requests}]


def send(method, path, headers, body):
    key = {{"authorization": f"Bearer {{KEY}}"}} if KEY else {{}}
    request = urllib.request.Request(URL + path, body, {{**headers, **key}}, method=method)
    try:
        response = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        print(response.status, file=sys.stderr)
        while data := response.read1():
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


for recorded in REQUESTS:
    send(*recorded)
'''
_TEST: Final = '''"""Runs {count} recorded again, offline: what is sent, the answer and the notices are the same."""

import pytest

from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import compare_to_recorded
from gateway.recording.recording import read_recording

RECORDING = (
{recording})


@pytest.mark.parametrize("interaction", read_recording(RECORDING).interactions(), ids=lambda one: one.request.id)
def test_the_recorded_request_gives_the_same(interaction):
    checks = compare_to_recorded(interaction, run_offline(interaction))
    assert [check for check in checks if check.difference] == []
'''


def python_script(recording: Recording, url: str = LOCAL) -> str:
    """Returns a script without dependencies, which sends to `url` (a plain address). Raises RecordingError for a
    request without its body."""
    interactions = recording.interactions()
    return _SCRIPT.format(count=_counted(interactions), url=url, requests="".join(map(_request, interactions)))


def pytest_module(recording: Recording) -> str:
    """Returns a module of tests which holds the recording. Raises RecordingError for one above the caps."""
    lines = write_recording(recording).splitlines(keepends=True)
    return _TEST.format(count=_counted(recording.interactions()), recording=_literal(lines, 4))


def _counted(interactions: tuple[Interaction, ...]) -> str:
    return "one request" if len(interactions) == 1 else f"{len(interactions)} requests"


def _request(interaction: Interaction) -> str:
    request, body = interaction.request, interaction.body
    if body is None:
        raise RecordingError(f"The body of the request {request.id} is not in the recording.")
    headers = {"content-type": "application/json", **request.headers}
    sent = {name: value for name, value in headers.items() if name in SENT_HEADERS}
    path = request.path if request.path.startswith("/") else f"/{request.path}"
    literal = _literal(list(_pieces(body)), 8)
    return f"    ({request.method!r}, {path!r}, {sent!r}, (\n{literal}    )),\n"


def _pieces(body: bytes) -> Iterator[bytes]:
    yield from (body[at : at + _WIDTH] for at in range(0, len(body) or 1, _WIDTH))


def _literal(pieces: list[bytes], indent: int) -> str:
    """Returns bytes as lines of literals: whatever is in them, none of it is read as Python."""
    return "".join(f"{' ' * indent}{piece!r}\n" for piece in pieces)
