import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import pytest
from starlette.routing import Route

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.demo.settings import DEMO_SETTINGS
from gateway.recording.recording import Recording, read_recording
from gateway.server.api.app import create_app
from gateway.server.api.inspect.responses import API
from gateway.server.inspect import watchers
from gateway.server.telemetry.request_context import RequestObserver
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, running_gateway

DEMO: Final = cast("dict[str, Json]", DEMO_SETTINGS)
ADMIN: Final = {"authorization": "Bearer admin-secret"}
SAID: Final = "Weltraumbahnhof Baikonur"


def settings(server: Mapping[str, Json] | None = None, **inspector: Json) -> dict[str, Json]:
    """Returns the settings of a gateway with the demo backends whose inspector keeps all contents."""
    return {
        **DEMO,
        "server": {"api_keys_env": None, **(server or {})},
        "inspector": {"contents": "always", **inspector},
    }


async def ask(gateway: RunningGateway, text: str = SAID, **fields: Json) -> str:
    """Returns the id of a request."""
    answer = await gateway.chat(model="demo-chat", messages=[{"role": "user", "content": text}], **fields)
    return answer.headers["x-request-id"]


async def exported(gateway: RunningGateway, **parameters: Any) -> dict[str, Any]:
    answer = await gateway.client.get("/inspect/api/export", params=parameters)
    assert answer.status_code == 200, answer.text
    return cast("dict[str, Any]", answer.json())


def recording_in(answer: Mapping[str, Any]) -> Recording:
    return read_recording(cast(str, answer["content"]).encode())


async def test_the_latest_requests_are_listed() -> None:
    async with running_gateway(settings()) as gateway:
        first, second = await ask(gateway), await ask(gateway, stream=True)
        answer = await gateway.client.get("/inspect/api/requests")
        assert [one["id"] for one in answer.json()["requests"]] == [second, first]
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert SAID not in answer.text
        answer = await gateway.client.get("/inspect/api/requests", params={"filter": "stream:yes", "limit": 5})
        assert [one["id"] for one in answer.json()["requests"]] == [second]
        answer = await gateway.client.get("/inspect/api/requests", params={"limit": 0})
        assert answer.json() == {"requests": [], "matching": 2, "total": 2, "words": []}
        answer = await gateway.client.get(f"/inspect/api/requests/{first}")
        assert answer.json()["summary"]["model"] == "demo-chat"
        assert (await gateway.client.delete("/inspect/api/requests")).status_code == 204
        empty = {"requests": [], "matching": 0, "total": 0, "words": []}
        assert (await gateway.client.get("/inspect/api/requests")).json() == empty


@pytest.mark.parametrize("level", ["shape", "full"])
async def test_an_export_is_redacted_and_says_that_it_shows_the_same(level: str) -> None:
    async with running_gateway(settings()) as gateway:
        ids = [await ask(gateway), await ask(gateway, stream=True)]
        answer = await exported(gateway, id=ids, redact=level)
        assert (answer["requests"], answer["differences"]) == (2, [])
        recording = recording_in(answer)
        assert recording.header.redaction.level == level and recording.header.redaction.checked
        assert [one.request.id for one in recording.interactions()] == ids
        assert not any(word.lower() in answer["content"].lower() for word in SAID.split())


async def test_words_are_shown_only_when_they_are_asked_for() -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway)
        assert SAID not in (await exported(gateway, id=request_id))["content"]
        assert SAID in (await exported(gateway, id=request_id, redact="none"))["content"]


async def test_the_keys_of_the_backend_and_of_the_client_are_in_no_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "backend-credential-17")
    entry: Json = {
        "adapter": "openai_chat",
        "base_url": "demo:chat",
        "api_key_env": "MINE",
        "headers": {"x-k": "header-17"},
    }
    own: dict[str, Json] = {**settings(), "backends": {"b": entry}, "models": {"demo-chat": {"backend": "b"}}}
    async with running_gateway(own) as gateway:
        body = {"model": "demo-chat", "messages": [{"role": "user", "content": "backend-credential-17 client-key-17"}]}
        headers = {"authorization": "Bearer client-key-17"}
        answer = await gateway.client.post("/v1/chat/completions?key=client-key-17", json=body, headers=headers)
        for form in ("recording", "har", "curl"):
            for level in ("none", "shape", "full"):
                parameters = {"id": answer.headers["x-request-id"], "redact": level, "as": form}
                content = (await exported(gateway, **parameters))["content"]
                for secret in ("backend-credential-17", "client-key-17", "header-17"):
                    assert secret not in content, (form, level)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("requests?filter=non:sense", 400, "FIELD:VALUE"),
        ("requests?filter=" + 500 * "ms:>1%20", 400, "most is 2000"),
        ("requests?limit=many", 400, "whole number"),
        ("requests?limit=-1", 400, "whole number"),
        ("requests/unknown", 404, "no request"),
        ("requests/unknown/messages", 404, "no request"),
        ("requests/unknown/sent", 404, "no request"),
        ("requests/unknown/received", 404, "no request"),
        ("requests/unknown/answer", 404, "no request"),
        ("requests/unknown/answer?from=3&to=2", 400, "must not be below"),
        ("export?id=unknown", 404, "no request"),
        ("export?id=unknown&as=pdf", 400, "Known forms"),
        ("export?id=unknown&redact=little", 400, "Known levels"),
    ],
)
async def test_a_wrong_question_is_told(path: str, status: int, said: str) -> None:
    async with running_gateway(settings()) as gateway:
        answer = await gateway.client.get(f"/inspect/api/{path}")
        assert answer.status_code == status and said in answer.json()["error"]["message"]


async def test_missing_contents_say_why() -> None:
    async with running_gateway(settings(contents="never")) as gateway:
        answer = await gateway.client.get("/inspect/api/export", params={"id": await ask(gateway)})
        assert answer.status_code == 404 and "were not kept" in answer.json()["error"]["message"]
    async with running_gateway(settings(keep_mb=0.0001)) as gateway:
        answer = await gateway.client.get("/inspect/api/export", params={"id": await ask(gateway)})
        assert answer.status_code == 404 and "gave way" in answer.json()["error"]["message"]


async def test_who_reads_the_stream_has_contents_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # The test says itself when those who watch are told, so that this never falls into the request.
    monkeypatch.setattr(watchers, "_TICK_S", 60)
    async with running_gateway(settings(contents="watched")) as gateway:
        unseen = await ask(gateway)
        async with gateway.client.stream("GET", "/inspect/api/stream") as stream:
            lines = stream.aiter_lines()
            seen = await ask(gateway)
            inspector = gateway.app.gateway_state.inspector
            assert inspector is not None
            async with asyncio.timeout(30):
                # The answer may be there before the request has ended.
                while (summary := inspector.recent.summary(seen)) is None or summary.live:  # noqa: ASYNC110 (no event tells it)
                    await asyncio.sleep(0.01)
            inspector.recent.watchers.send()
            kinds = []
            async for line in lines:
                if line.startswith("event: "):
                    kinds.append(line.removeprefix("event: "))
                if line.startswith("data: ") and json.loads(line.removeprefix("data: "))["live"] is False:
                    break
        assert kinds == ["ended"]  # it was short
        async with asyncio.timeout(30):
            while inspector.recent.watchers.queues:  # noqa: ASYNC110 (no event tells it)
                await asyncio.sleep(0.01)
        assert (await exported(gateway, id=seen))["requests"] == 1
        answer = await gateway.client.get("/inspect/api/export", params={"id": unseen})
        assert answer.status_code == 404


# Every route below /inspect/api: its method, its path, and its status for who may look. `x` is no request.
ROUTES: Final = (
    ("GET", "requests", 200),
    ("GET", "totals", 200),
    ("GET", "sessions", 200),
    ("DELETE", "requests", 204),
    ("GET", "requests/x", 404),
    ("GET", "requests/x/messages", 404),
    ("GET", "requests/x/sent", 404),
    ("GET", "requests/x/received", 404),
    ("GET", "requests/x/answer", 404),
    ("GET", "requests/x/diff", 404),
    ("POST", "requests/x/send", 403),
    ("POST", "send", 403),
    ("POST", "explain", 400),
    ("GET", "export?id=x", 404),
    ("GET", "stream", 200),
    ("GET", "settings", 200),
    ("GET", "running-settings", 200),
    ("GET", "effective-settings", 200),
    ("GET", "doctor", 200),
    ("POST", "doctor", 403),
    ("GET", "rules/TOOL_ORPHAN", 200),
)


def test_every_route_is_in_the_table() -> None:
    """So that the tests of who may look try it."""
    served = {
        (method, re.sub(r"\{\w+\}", "x", route.path).removeprefix(API))
        for route in create_app(read_settings({})).load_routes().routes
        if isinstance(route, Route) and route.path.startswith(API)
        for method in (route.methods or set()) - {"HEAD"}
    }
    listed = [(method, f"/{path.partition('?')[0]}".replace("TOOL_ORPHAN", "x")) for method, path, _ in ROUTES]
    assert set(listed) == served and len(listed) == len(served)


async def status(gateway: RunningGateway, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Returns the status of an answer, which may be without end, and the code of its error."""
    body: Any = {} if method == "POST" else None
    url = f"/inspect/api/{path}"
    async with gateway.client.stream(method, url, json=body, headers=dict(headers)) as answer:
        text = await answer.aread() if answer.status_code >= 400 else b"{}"
        return answer.status_code, json.loads(text).get("error", {}).get("code", "")


@pytest.mark.parametrize(
    "closed",
    [
        settings({"api_keys_env": "KEYS"}, send=True),
        settings({"allowed_hosts": ["gateway.example"]}, send=True),
        settings(enabled="off", send=True),
    ],
    ids=["keys", "hosts", "off"],
)
async def test_nobody_looks_where_others_may_reach_the_gateway(
    closed: dict[str, Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYS", "client-key")
    async with running_gateway(closed) as gateway:
        assert gateway.app.gateway_state.inspector is None
        for method, path in [*((method, path) for method, path, _ in ROUTES), ("GET", "nothing")]:
            for headers in ({}, {"authorization": "Bearer client-key"}, ADMIN):
                assert await status(gateway, method, path, headers) == (404, "inspector_off"), path


async def test_the_admin_key_opens_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    monkeypatch.setenv("KEYS", "client-key")
    async with running_gateway(settings({"api_keys_env": "KEYS"}, enabled="on")) as gateway:
        for method, path, opened in ROUTES:
            for wrong in (
                {},
                {"authorization": "Bearer client-key"},
                {"authorization": "admin-secret"},
                {"x-api-key": "admin-secret"},
            ):
                assert await status(gateway, method, path, wrong) == (401, "invalid_admin_key"), path
            assert (await status(gateway, method, path, ADMIN))[0] == opened, path
        # It is no client's key.
        assert (await gateway.client.get("/v1/models", headers=ADMIN)).status_code == 401


@pytest.mark.parametrize("path", ["/metrics", "/v1/events"])
async def test_what_shows_all_clients_needs_the_admin_key_where_there_is_one(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYS", "client-key")
    client = {"authorization": "Bearer client-key"}
    for admin, opening, refused in (("", client, ADMIN), ("admin-secret", ADMIN, client)):
        monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", admin)
        # Whether there is an inspector or not.
        for enabled in ("loopback", "off"):
            async with running_gateway(settings({"api_keys_env": "KEYS"}, enabled=enabled)) as gateway:
                assert (await gateway.client.get(path, headers=refused)).status_code == 401
                assert (await gateway.client.get(path)).status_code == 401
                async with gateway.client.stream("GET", path, headers=opening) as answer:
                    assert answer.status_code == 200


@pytest.mark.parametrize(
    "head",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
    ],
)
async def test_pages_of_other_origins_get_nothing(head: dict[str, str]) -> None:
    async with running_gateway(settings(send=True)) as gateway:
        for method, path, _ in ROUTES:
            answer = await gateway.client.request(method, f"/inspect/api/{path}", headers=head)
            assert answer.json()["error"]["code"] == "cross_site_request", path
            assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers
        for own in ({"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {"origin": gateway.base_url}):
            answer = await gateway.client.get("/inspect/api/requests", headers=own)
            assert answer.status_code == 200
        answer = await gateway.client.get("/inspect/api/requests", headers={"host": "evil.example"})
        assert answer.status_code == 421


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"])
async def test_who_comes_through_a_proxy_needs_the_admin_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy on the gateway's own machine makes everybody look local."""
    forwarded = {name: "for=192.0.2.1"}
    async with running_gateway(settings(send=True)) as gateway:
        for method, path, _ in ROUTES:
            assert await status(gateway, method, path, forwarded) == (404, "inspector_off"), path
        assert (await gateway.client.get("/inspect", headers=forwarded)).status_code == 404
        assert (await gateway.client.get("/inspect/api/requests")).status_code == 200
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    async with running_gateway(settings()) as gateway:
        answer = await gateway.client.get("/inspect/api/requests", headers={**forwarded, **ADMIN})
        assert answer.status_code == 200


async def test_an_inspector_that_is_on_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_ADMIN_KEY", raising=False)
    with pytest.raises(SettingsError, match="set DRAGOMAN_ADMIN_KEY"):
        async with running_gateway(settings(enabled="on")):
            pass


async def test_the_bytes_are_the_same_with_and_without_an_observer() -> None:
    answers: list[set[bytes]] = []
    observers: list[dict[str, Json]] = [{"enabled": "off"}, {"contents": "never"}, {"contents": "always"}]
    for inspector in observers:
        async with running_gateway({**DEMO, "inspector": inspector}) as gateway:
            found = set()
            for stream in (False, True):
                answer = await gateway.chat(model="demo-chat", stream=stream)
                text = answer.text
                for line in text.replace("data: ", "\n").split("\n"):
                    if line.startswith("{"):
                        document = json.loads(line)
                        text = text.replace(document["id"], "ID").replace(str(document["created"]), "0")
                found.add(text.encode())
            answers.append(found)
    assert answers[0] == answers[1] == answers[2]


async def test_an_inspector_that_is_off_observes_nothing() -> None:
    """A request costs not one call more: nobody is asked."""
    async with running_gateway(settings(enabled="off")) as off, running_gateway(settings()) as on:
        without, with_it = off.app.gateway_state.observers, on.app.gateway_state.observers
        assert off.app.gateway_state.inspector is None
        methods = {name for name in vars(RequestObserver) if not name.startswith("_")}
        assert {"begin", "notices", "conclude", "error", "body"} <= methods
        for name in methods:
            more = len(getattr(with_it, name)) - len(getattr(without, name))
            # A request that does not fail has no `error_writer`.
            assert more == (1 if name in ("begin", "notices", "conclude", "error_writer") else 0), name
