"""`dragoman inspect FILE` serves the page over a recording, to who has the key of its address."""

import asyncio
import re
import signal
from pathlib import Path

import httpx

from gateway.recording.files import save_recording
from gateway.recording.recording import Recording
from gateway.testing.gateway import gateway_command
from tests.recording.samples import golden_recordings


def recording_of_two() -> Recording:
    found = [one for recording in golden_recordings()[:2] for one in recording.interactions()]
    return Recording().with_interactions(one.numbered(x) for x, one in enumerate(found, 1))


async def test_a_recording_is_shown_to_who_has_its_address(tmp_path: Path) -> None:
    file, recording = tmp_path / "bug.dragoman.jsonl", recording_of_two()
    save_recording(file, recording)
    async with gateway_command(tmp_path, None, "inspect", str(file)) as command:
        assert command.process.stdout is not None
        async with asyncio.timeout(40):
            printed = (await command.process.stdout.readuntil(b"Ctrl-C ends it\n")).decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/inspect#key=(\S+)", printed)
        assert found, printed
        async with httpx.AsyncClient(base_url=found[1]) as reader:
            assert (await reader.get("/inspect")).status_code == 200
            assert (await reader.get("/inspect/api/requests")).status_code == 401
            reader.headers["authorization"] = f"Bearer {found[2]}"
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


async def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}\n")
    async with gateway_command(tmp_path, None, "inspect", str(tmp_path / "x.jsonl")) as command:
        status, said = await command.ended()
    assert status == 2 and "Line 1" in said
