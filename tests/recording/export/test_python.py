"""The exported script, run by a bare Python, sends the recorded bytes; the exported test runs."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from gateway.recording.export.python import pytest_module, python_script
from gateway.recording.lines import RecordingError, data_of
from gateway.recording.recording import Recording
from tests.recording.export.test_curl import BODIES, receiving
from tests.recording.samples import goldens, interaction_of


def recording_of(*bodies: bytes) -> Recording:
    one = interaction_of(goldens()[0])
    made = [
        msgspec.structs.replace(one, request=msgspec.structs.replace(one.request, body=data_of(body)))
        for body in bodies
    ]
    return Recording().with_interactions(each.numbered(x) for x, each in enumerate(made, 1))


async def run(*arguments: str, **environ: str) -> tuple[int, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said


async def test_the_script_sends_the_recorded_bytes(tmp_path: Path) -> None:
    file = tmp_path / "again.py"
    file.write_text(python_script(recording_of(*BODIES)))
    async with receiving() as received:
        status, said = await run("-I", str(file), DRAGOMAN_URL=received.url, DRAGOMAN_KEY="k-1")
        assert status == 0, said
    assert received.bodies == BODIES and b"ok" in said
    assert all(b"authorization: bearer k-1" in head.lower() for head in received.heads)


@pytest.mark.full
async def test_the_test_runs_and_fails_where_something_differs(tmp_path: Path) -> None:
    one = interaction_of(goldens()[0])
    module = pytest_module(Recording().with_interactions([one]))
    file = tmp_path / "test_again.py"
    file.write_text(module)
    status, said = await run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(file))
    assert status == 0 and b"1 passed" in said
    assert one.end is not None
    other = msgspec.structs.replace(one, end=msgspec.structs.replace(one.end, status=201))
    file.write_text(pytest_module(Recording().with_interactions([other])))
    status, said = await run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(file))
    assert status == 1 and b"now 200" in said


def test_a_request_without_its_body_is_refused() -> None:
    one = interaction_of(goldens()[0])
    empty = msgspec.structs.replace(one, request=msgspec.structs.replace(one.request, body=None))
    with pytest.raises(RecordingError, match="is not in the recording"):
        python_script(Recording().with_interactions([empty]))
