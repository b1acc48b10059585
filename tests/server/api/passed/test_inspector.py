"""Of a request that is passed on, the inspector and recordings have the type and size of its bodies, and no byte."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.recording.export import EXPORTS
from gateway.testing.gateway import RunningGateway
from tests.commands.test_recordings import run
from tests.framing.test_body_fields import form, part
from tests.server.api.passed.recording_server import AUDIO, CLIENT_KEY, KEY, RecordingServer, passing_gateway, respond
from tests.server.api.passed.test_passing import FORM

ADMIN: dict[str, str] = {"authorization": "Bearer admin-key-1234"}
SECRET_WORDS = "what the user said"


@pytest.fixture
async def watched(server: RecordingServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningGateway]:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", ADMIN["authorization"].removeprefix("Bearer "))
    async with passing_gateway(server, inspector={"contents": "always", "send": True}) as gateway:
        yield gateway


async def _speak(gateway: RunningGateway, model: str = "embed") -> httpx.Response:
    return await gateway.client.post("/v1/audio/speech", json={"model": model, "input": SECRET_WORDS})


async def test_the_list_shows_it(watched: RunningGateway) -> None:
    assert (await _speak(watched)).content == AUDIO
    listed = (await watched.client.get("/inspect/api/requests", headers=ADMIN)).json()
    (shown,) = listed["requests"]
    assert (shown["path"], shown["model"], shown["backend"], shown["status"]) == (
        "/v1/audio/speech",
        "embed",
        "audio",
        200,
    )


@pytest.mark.parametrize("model", ["embed", "m", "nothing"])
async def test_every_view_of_it_answers_without_its_words(watched: RunningGateway, model: str) -> None:
    answer = await _speak(watched, model)
    listed = (await watched.client.get("/inspect/api/requests", headers=ADMIN)).json()
    request_id = listed["requests"][0]["id"]
    assert request_id == answer.headers["x-request-id"]
    for view in ("", "/messages", "/received", "/sent", "/answer", "/diff"):
        url = f"/inspect/api/requests/{request_id}{view}"
        shown = await watched.client.get(url, headers=ADMIN, params={"reveal": "1"})
        assert shown.status_code < 500, (view, shown.text)
        assert SECRET_WORDS not in shown.text, view
        assert KEY not in shown.text and CLIENT_KEY not in shown.text, view


async def _shown(gateway: RunningGateway, answer: httpx.Response) -> tuple[str, str]:
    """What the page says of a request, and of what came of it."""
    url = f"/inspect/api/requests/{answer.headers['x-request-id']}"
    shown = (await gateway.client.get(url, headers=ADMIN)).json()
    end = (await gateway.client.get(f"{url}/answer", headers=ADMIN)).json()["end"]
    return shown["headline"], end["came"]


@pytest.mark.parametrize("contents", ["always", "watched"])
async def test_the_page_says_what_came_of_it(
    server: RecordingServer, monkeypatch: pytest.MonkeyPatch, contents: str
) -> None:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", ADMIN["authorization"].removeprefix("Bearer "))
    async with passing_gateway(server, inspector={"contents": contents}) as gateway:
        if contents == "always":
            headline, came = await _shown(gateway, await _speak(gateway))
            assert headline == f"The backend audio answered with {len(AUDIO):,} bytes, which were passed on."
            assert came == f"{len(AUDIO)} bytes, which were passed on"
        headline, came = await _shown(gateway, await _speak(gateway, "m"))
        assert headline == "The gateway refused the request; nothing was sent to a backend."
        assert came == "nothing: no request was sent"
        server.answer = lambda _: respond(b'{"error": {"message": "no"}}', status="400 Bad Request")
        headline, came = await _shown(gateway, await _speak(gateway))
        assert headline == "The backend audio failed with invalid_value."
        assert came == "no answer that could be passed on"


async def test_an_error_within_the_body_is_kept(watched: RunningGateway) -> None:
    """The gateway has made it, though the client was still sending."""
    body = form(part("model", b"nothing"), part("file", SECRET_WORDS.encode() + b"x" * 9 * 2**20))
    answer = await watched.client.post("/v1/audio/transcriptions", content=body, headers=FORM)
    url = f"/inspect/api/requests/{answer.headers['x-request-id']}/answer"
    shown = (await watched.client.get(url, headers=ADMIN, params={"reveal": "1"})).json()
    assert [chunk["text"] for chunk in shown["chunks"]] == [answer.text]


async def _exported(gateway: RunningGateway, request_id: str) -> str:
    params = {"id": request_id, "redact": "none"}
    exported = await gateway.client.get("/inspect/api/export", headers=ADMIN, params=params)
    assert exported.status_code == 200, exported.text
    content: str = exported.json()["content"]
    assert SECRET_WORDS not in content
    return content


async def test_a_recording_has_type_and_size(watched: RunningGateway, tmp_path: Path) -> None:
    answer = await _speak(watched)
    content = await _exported(watched, answer.headers["x-request-id"])
    lines = [json.loads(line) for line in content.splitlines()]
    (request,) = [line for line in lines if line["kind"] == "request"]
    assert request["headers"]["content-type"] == "application/json"
    assert request["absent"] == "never_kept"
    assert request["beginning"]["bytes"] == len(answer.request.content)
    (gap,) = [line for line in lines if line["kind"] == "gap"]
    assert (gap["side"], gap["bytes"], gap["absent"]) == ("client", len(AUDIO), "never_kept")
    heads = [line for line in lines if line["kind"] == "head"]
    assert [(head["side"], head["headers"]["content-type"]) for head in heads] == [("client", "audio/mpeg")]
    assert not [line for line in lines if line["kind"] == "bytes"]
    path = tmp_path / "one.dragoman.jsonl"
    path.write_text(content)
    assert await asyncio.to_thread(run, "replay", str(path)) == 1, "what was never kept is not said to be the same"


@pytest.mark.parametrize("form", EXPORTS)
async def test_a_form_that_needs_the_body_says_that_it_is_missing(watched: RunningGateway, form: str) -> None:
    answer = await _speak(watched)
    params = {"id": answer.headers["x-request-id"], "redact": "none", "as": form}
    exported = await watched.client.get("/inspect/api/export", headers=ADMIN, params=params)
    assert SECRET_WORDS not in exported.text
    if form in ("curl", "python"):
        assert exported.status_code == 400
        assert "is not in the recording" in exported.json()["error"]["message"]
    else:
        assert exported.status_code == 200, exported.text


async def test_it_cannot_be_sent_again(watched: RunningGateway, server: RecordingServer) -> None:
    request_id = (await _speak(watched)).headers["x-request-id"]
    url = f"/inspect/api/requests/{request_id}/send"
    again = await watched.client.post(url, json={}, headers=ADMIN)
    assert 400 <= again.status_code < 500, again.text
    assert len(server.seen) == 1
