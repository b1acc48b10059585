"""A request that is sent again is one of the inspector's own: the same bytes, another name, under the limits."""

import asyncio
from pathlib import Path
from typing import Any, Final, cast

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest, SettingsError
from gateway.recording.lines import RequestLine, data_of
from gateway.recording.recording import Interaction
from gateway.server.inspect.sent_requests import InspectorClient, SentRequests
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_request_routes import seen_by_backend
from tests.server.api.inspect.test_routes import ADMIN, settings

CLIENT: Final = {"authorization": "Bearer client-key"}
SAID: Final[Json] = [{"role": "user", "content": "Wetter in Kassel?"}]
# One request of each dialect, streamed: its path and its body.
REQUESTS: Final[dict[str, tuple[str, Json]]] = {
    "openai_chat": ("/v1/chat/completions", {"model": "demo-chat", "messages": SAID, "stream": True}),
    "openai_completions": ("/v1/completions", {"model": "demo-chat", "prompt": "Wetter?", "stream": True}),
    "openai_responses": ("/v1/responses", {"model": "demo-chat", "input": "Wetter?", "stream": True}),
    "anthropic_messages": (
        "/v1/messages",
        {"model": "demo-chat", "max_tokens": 99, "messages": SAID, "stream": True},
    ),
    "gemini": (
        "/v1beta/models/demo-chat:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "Wetter?"}]}]},
    ),
    "ollama": ("/api/chat", {"model": "demo-chat", "messages": SAID}),
}


def backend_requests(gateway: RunningGateway) -> int:
    return len(gateway.app.gateway_state.demo_backends._running["chat"].requests)


async def resent(gateway: RunningGateway, request_id: str, **options: Any) -> httpx.Response:
    return await gateway.client.post(f"/inspect/api/requests/{request_id}/send", json={}, **options)


async def summary(gateway: RunningGateway, request_id: str, **options: Any) -> dict[str, Any]:
    """Returns the summary of a request once it has ended."""
    inspector = gateway.app.gateway_state.inspector
    assert inspector is not None
    ended = asyncio.Event()
    inspector.recent.on_end.append(lambda read: ended.set())
    async with asyncio.timeout(10):
        while (found := await inspector.summary(request_id)).live:
            await ended.wait()
            ended.clear()
    answer = await gateway.client.get(f"/inspect/api/requests/{found.id}", **options)
    return cast("dict[str, Any]", answer.json()["summary"])


async def test_nothing_is_sent_unless_the_settings_say_so() -> None:
    async with running_gateway(settings()) as gateway:
        request_id = (await gateway.chat(model="demo-chat")).headers["x-request-id"]
        before = backend_requests(gateway)
        answer = await resent(gateway, request_id)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_sent")
        assert "inspector.send" in answer.json()["error"]["message"]
        assert backend_requests(gateway) == before
        assert (await gateway.client.get("/inspect/api/requests")).json()["total"] == 1
        assert (await gateway.client.get("/inspect/api/settings")).json()["send"] is False


@pytest.mark.parametrize("dialect", REQUESTS)
async def test_a_request_is_sent_again_as_it_came(dialect: str) -> None:
    path, body = REQUESTS[dialect]
    async with running_gateway(settings(send=True)) as gateway:
        answer = await gateway.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        first = (await gateway.client.get("/inspect/api/requests")).json()["requests"][0]
        sent = seen_by_backend(gateway, "chat")
        answer = await resent(gateway, first["id"])
        assert answer.status_code == 202, answer.text
        # It is there at once, while it is being served.
        found = await gateway.client.get(f"/inspect/api/requests/{answer.json()['id']}")
        assert found.status_code == 200
        again = await summary(gateway, answer.json()["id"])
        assert backend_requests(gateway) == 2 and seen_by_backend(gateway, "chat") == sent
        for same in ("status", "code", "method", "path", "dialect", "model", "backend", "stream", "contents"):
            assert again[same] == first[same], same
        assert (first["key"], again["key"]) == ("-", "inspector") and again["id"] != first["id"]
        listed = (await gateway.client.get("/inspect/api/requests?filter=key:inspector")).json()["requests"]
        assert [one["id"] for one in listed] == [again["id"]]
        difference = await gateway.client.get(
            f"/inspect/api/requests/{again['id']}/diff", params={"against": first["id"]}
        )
        assert difference.json()["against"] == first["id"] and difference.json()["changed"] == []


async def test_it_is_under_limits_of_its_own_and_uses_no_key_of_a_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    names = tmp_path / "keys"
    names.write_text("alice:client-key\n")
    limits: Json = {"alice": {"requests_per_minute": 1}, "inspector": {"requests_per_minute": 2}}
    own = {**settings({"api_keys_file": str(names)}, enabled="on", send=True), "keys": limits}
    async with running_gateway(own) as gateway:
        gateway.client.headers.update(CLIENT)
        first = (await gateway.chat(model="demo-chat")).headers["x-request-id"]
        assert (await gateway.chat(model="demo-chat")).status_code == 429
        # Neither no key nor a client's opens it.
        for wrong in ({"authorization": ""}, CLIENT):
            assert (await resent(gateway, first, headers=wrong)).status_code == 401
        found = []
        for _ in range(3):
            answer = await resent(gateway, first, headers=ADMIN)
            found.append(await summary(gateway, answer.json()["id"], headers=ADMIN))
        assert [(one["key"], one["status"], one["code"]) for one in found] == [
            ("inspector", 200, ""),
            ("inspector", 200, ""),
            ("inspector", 429, "rate_limit_exceeded"),
        ]
        assert backend_requests(gateway) == 3


async def test_what_is_stored_for_a_client_is_not_found() -> None:
    async with running_gateway(settings(send=True)) as gateway:
        body: dict[str, Json] = {"model": "demo-chat", "input": "Wetter?"}
        stored = (await gateway.client.post("/v1/responses", json=body)).json()["id"]
        body = {"model": "demo-chat", "input": "Und morgen?", "previous_response_id": stored}
        answer = await gateway.client.post("/v1/responses", json=body)
        assert answer.status_code == 200
        again = await summary(gateway, (await resent(gateway, answer.headers["x-request-id"])).json()["id"])
        assert (again["status"], again["code"]) == (400, "previous_response_not_found")
        assert backend_requests(gateway) == 2


async def test_a_page_of_another_origin_and_a_form_send_nothing() -> None:
    async with running_gateway(settings(send=True)) as gateway:
        first = (await gateway.chat(model="demo-chat")).headers["x-request-id"]
        for site in ("cross-site", "same-site"):
            assert (await resent(gateway, first, headers={"sec-fetch-site": site})).status_code == 403
        answer = await gateway.client.post(f"/inspect/api/requests/{first}/send", data={"a": "b"})
        assert answer.status_code == 415
        assert backend_requests(gateway) == 1


@pytest.mark.parametrize(
    ("inspector", "said"),
    [
        ({"contents": "never"}, "they were not kept"),
        ({"keep_mb": 0.0001}, "gave way"),
        ({"request_mb": 0.00001}, "inspector.request_mb"),
    ],
)
async def test_a_request_whose_contents_are_gone_is_not_sent(inspector: dict[str, Json], said: str) -> None:
    async with running_gateway(settings(None, send=True, **inspector)) as gateway:
        answer = await resent(gateway, (await gateway.chat(model="demo-chat")).headers["x-request-id"])
        assert answer.status_code == 404 and said in answer.json()["error"]["message"]
        assert (await resent(gateway, "unknown")).status_code == 404
        assert backend_requests(gateway) == 1


async def test_no_client_may_have_the_name_of_the_inspector(tmp_path: Path) -> None:
    names = tmp_path / "keys"
    names.write_text("inspector:client-key\n")
    with pytest.raises(SettingsError, match="'inspector'"):
        async with running_gateway(settings({"api_keys_file": str(names)}, send=True)):
            pass
    async with running_gateway(settings({"api_keys_file": str(names)})):
        pass


async def test_what_is_being_sent_ends_with_the_gateway() -> None:
    ended: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(scope)

    request = RequestLine(1, "r", "openai_chat", "POST", "/v1/models/a%20b?alt=sse", {"accept": "a"}, data_of(b"{}"))
    sent = SentRequests(True, list)
    new_id = await sent.send(app, Interaction(request))
    assert not ended
    async with asyncio.timeout(10):
        await sent.aclose()
    (scope,) = ended
    assert (scope["path"], scope["query_string"]) == ("/v1/models/a b", b"alt=sse")
    assert isinstance(scope["state"]["client"], InspectorClient)
    assert dict(scope["headers"]) == {
        b"accept": b"a",
        b"host": b"localhost",
        b"content-length": b"2",
        b"x-request-id": new_id.encode(),
    }
    with pytest.raises(InvalidRequest, match=r"inspector\.send"):
        await SentRequests(False, list).send(app, Interaction(request))
