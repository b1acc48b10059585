"""Every request is saved in the folder that `inspector.record` names."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.recording.files import load_recording
from gateway.testing.gateway import running_gateway
from tests.server.api.inspect.test_routes import SAID, ask, settings


async def test_every_request_is_saved_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    async with running_gateway(settings(record=str(folder), contents="never")) as gateway:
        ids = [await ask(gateway), await ask(gateway, stream=True), await ask(gateway, n=3)]
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600 and path.name.endswith(".dragoman.jsonl")
    recording = load_recording(path)
    assert recording.header.redaction.level == "shape"
    assert [one.request.id for one in recording.interactions()] == ids
    assert [one.x for one in recording.interactions()] == [1, 2, 3]
    assert not any(word in path.read_text() for word in SAID.split())


async def test_no_key_of_a_client_is_in_the_folder(tmp_path: Path) -> None:
    """Also where a name of the request is what it sends as its key: names stay as they are."""
    key, folder = "canary_of_the_client", tmp_path / "recorded"
    tool: Json = {"type": "function", "function": {"name": key, "parameters": {"type": "object"}}}
    async with running_gateway(settings(record=str(folder))) as gateway:
        gateway.client.headers["authorization"] = f"Bearer {key}"
        await ask(gateway, f"My key is {key}.", tools=[tool])
    (path,) = folder.iterdir()
    assert '"kind":"end"' in path.read_text() and key not in path.read_text()


async def test_a_folder_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"inspector\.record"):
        async with running_gateway(settings(record=str(tmp_path / "file" / "below"))):
            pass


def _written(folder: Path) -> list[Path]:
    """The files in which a whole request is."""
    return [path for path in folder.iterdir() if '"kind":"end"' in path.read_text()]


async def test_requests_behind_a_deleted_file_are_in_a_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    async with running_gateway(settings(record=str(folder))) as gateway:
        await ask(gateway)
        async with asyncio.timeout(30):
            while not (found := _written(folder)):  # noqa: ASYNC110 (the thread that writes sets no event)
                await asyncio.sleep(0.01)
        found[0].unlink()
        later = await ask(gateway)
    (path,) = folder.iterdir()
    assert [one.request.id for one in load_recording(path).interactions()] == [later]


async def test_a_request_that_cannot_be_redacted_costs_no_other_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "recorded"
    async with running_gateway(settings(record=str(folder))) as gateway:
        with monkeypatch.context() as patch:
            patch.setattr("gateway.server.inspect.folder.redact_alike", lambda *_, **__: 1 / 0)
            await ask(gateway)
            async with asyncio.timeout(30):
                while "a request was not recorded" not in caplog.messages:  # noqa: ASYNC110 (as above)
                    await asyncio.sleep(0.01)
        later = await ask(gateway)
    (path,) = folder.iterdir()
    assert [one.request.id for one in load_recording(path).interactions()] == [later]
