"""`dragoman inspect FILE` serves the page over a recording, to who has the key of its address."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from gateway.recording.files import save_recording
from gateway.recording.recording import Recording
from gateway.recording.redact.redact import redact
from gateway.testing.gateway import GatewayCommand, gateway_command
from tests.recording.samples import golden_recordings


def recording_of_two() -> Recording:
    found = [one for recording in golden_recordings()[:2] for one in recording.interactions()]
    return Recording().with_interactions(one.numbered(x) for x, one in enumerate(found, 1))


@asynccontextmanager
async def reading(command: GatewayCommand) -> AsyncIterator[httpx.AsyncClient]:
    """A client that has the key of the printed address."""
    assert command.process.stdout is not None
    async with asyncio.timeout(40):
        printed = (await command.process.stdout.readuntil(b"Ctrl-C ends it\n")).decode()
    found = re.search(r"(http://127\.0\.0\.1:\d+)/inspect#key=(\S+)", printed)
    assert found, printed
    async with httpx.AsyncClient(
        base_url=found[1], headers={"authorization": f"Bearer {found[2]}"}, timeout=30
    ) as reader:
        yield reader


async def test_a_recording_is_shown_to_who_has_its_address(tmp_path: Path) -> None:
    file, recording = tmp_path / "bug.dragoman.jsonl", recording_of_two()
    save_recording(file, recording)
    async with gateway_command(tmp_path, None, "inspect", str(file)) as command:
        async with reading(command) as reader:
            key = reader.headers.pop("authorization")
            assert (await reader.get("/inspect")).status_code == 200
            assert (await reader.get("/inspect/api/requests")).status_code == 401
            reader.headers["authorization"] = key
            listed = (await reader.get("/inspect/api/requests")).json()
            ids = [one.request.id for one in recording.interactions()]
            assert [one["id"] for one in listed["requests"]] == list(dict.fromkeys(reversed(ids)))
            for one in listed["requests"]:
                path = f"/inspect/api/requests/{one['id']}"
                detail = (await reader.get(path)).json()
                assert detail["checks"] and all(check["same"] for check in detail["checks"])
                assert (await reader.get(f"{path}/messages")).json()["rows"]
            assert (await reader.get("/inspect/api/stream")).status_code == 204, "nothing changes: do not ask again"
            words = await reader.get("/inspect/api/requests", params={"filter": "no-such-word-in-it"})
            assert words.json()["matching"] == 0
            exported = await reader.get("/inspect/api/export", params={"id": listed["requests"][0]["id"]})
            assert exported.json()["requests"] == 1
        command.process.send_signal(signal.SIGINT)
        status, said = await command.ended()
    assert status == 0 and "WARNING" not in said


async def test_a_redacted_recording_is_shown_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "bug.dragoman.jsonl"
    recording = redact(recording_of_two(), "shape", b"seed").recording
    save_recording(file, recording)
    body = json.loads((recording.interactions()[-1].body or b"").decode())
    async with gateway_command(tmp_path, None, "inspect", str(file)) as command, reading(command) as reader:
        settings = (await reader.get("/inspect/api/settings")).json()
        assert (settings["reveal"], settings["redacted"]) == (False, True)
        path = f"/inspect/api/requests/{recording.interactions()[-1].request.id}"
        rows = (await reader.get(f"{path}/messages")).json()["rows"]
        shown = [row["cells"]["client"]["text"] for row in rows if row["cells"]["client"]]
        assert shown and all(text in str(body) for text in shown)


async def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}\n")
    async with gateway_command(tmp_path, None, "inspect", str(tmp_path / "x.jsonl")) as command:
        status, said = await command.ended()
    assert status == 2 and "Line 1" in said
