"""A backend that quotes the gateway's own credential is no defect of the gateway, and the page shows nothing of it."""

import json
from collections.abc import AsyncIterator
from typing import Final, cast

import pytest

from gateway.core.conversation import Json
from gateway.settings import read_settings
from gateway.testing.faulty import HEAD, Connection, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_routes import settings
from tests.server.upstream.test_credentials import issuer_running

CREDENTIAL: Final = "quoted-credential-17c0"
HEADER: Final = "quoted-header-77d2"
ERROR: Final[Json] = {
    "error": {"message": f"Wrong key {CREDENTIAL} with {HEADER}", "type": "auth", "code": CREDENTIAL, "param": HEADER}
}
REFUSED: Final = answer("400 Bad Request", json.dumps(ERROR).encode(), b"content-type: application/json")
STREAM: Final = (
    HEAD
    + chunk(b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n')
    + chunk(b"data: %s\n\n" % json.dumps(ERROR).encode())
)
CUT: Final = answer("503 Busy", json.dumps({"error": {"message": "x" * 290 + CREDENTIAL}}).encode())


@pytest.mark.parametrize("said", [REFUSED, STREAM, CUT], ids=["refusal", "stream", "cut"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
async def test_what_is_made_again_equals_what_was_sent(said: bytes, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def quote(connection: Connection) -> None:
        await connection.send(said)

    monkeypatch.setenv("MINE", CREDENTIAL)
    async with faulty_backend(quote) as backend:
        entry: Json = {
            "adapter": "openai_chat",
            "base_url": backend.base_url,
            "api_key_env": "MINE",
            "headers": {"x-more": HEADER},
        }
        own: dict[str, Json] = {**settings(), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(own) as gateway:
            body: dict[str, Json] = {"model": "m", "stream": True, "max_tokens": 9}
            said_by_client: Json = [{"role": "user", "content": "Hello"}]
            body |= {"input": "Hello"} if path.endswith("responses") else {"messages": said_by_client}
            told = await gateway.client.post(path, json=body)
            assert CREDENTIAL not in told.text and HEADER not in told.text
            listed = await gateway.client.get("/inspect/api/requests")
            request_id = cast(str, listed.json()["requests"][0]["id"])
            assert listed.json()["requests"][0]["code"]
            for reveal in ("", "?reveal=1"):
                found = await gateway.client.get(f"/inspect/api/requests/{request_id}{reveal}")
                checks = found.json()["checks"]
                assert [check["name"] for check in checks] == ["request", "sent", "answer", "outcome"]
                assert all(check["same"] for check in checks), checks
                for view in ("", "/messages", "/sent", "/answer"):
                    text = (await gateway.client.get(f"/inspect/api/requests/{request_id}{view}{reveal}")).text
                    assert CREDENTIAL not in text and HEADER not in text


async def test_no_finding_of_the_doctor_quotes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def quote(connection: Connection) -> None:
        await connection.send(REFUSED)

    monkeypatch.setenv("MINE", CREDENTIAL)
    async with faulty_backend(quote) as backend:
        entry: Json = {
            "adapter": "openai_chat",
            "base_url": backend.base_url,
            "api_key_env": "MINE",
            "headers": {"x-more": HEADER},
        }
        own: dict[str, Json] = {**settings(send=True), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(own) as gateway:
            found = await gateway.client.post("/inspect/api/doctor", json={"backend": "b"}, timeout=120)
            assert found.status_code == 200 and "Wrong key" in found.text
            assert CREDENTIAL not in found.text and HEADER not in found.text


ANSWER: Final = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}


async def shown(gateway: RunningGateway, request_id: str) -> AsyncIterator[str]:
    """Yields everything that is shown of a request, with its words."""
    for view in ("", "/messages", "/sent", "/answer"):
        yield (await gateway.client.get(f"/inspect/api/requests/{request_id}{view}?reveal=1")).text
    for form in ("recording", "har", "curl"):
        parameters = {"id": request_id, "as": form, "redact": "none"}
        yield (await gateway.client.get("/inspect/api/export", params=parameters)).text


async def test_a_secret_that_was_replaced_since_is_not_shown() -> None:
    """The backend had it when the request was served, whatever the settings say now."""

    async def quote(connection: Connection) -> None:
        said = json.dumps(ANSWER).replace('"x"', f'"Your header is {HEADER}"')
        await connection.send(answer("200 OK", said.encode(), b"content-type: application/json"))

    async with faulty_backend(quote) as backend:
        entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": backend.base_url}
        own: dict[str, Json] = {**settings(), "models": {"m": {"backend": "b"}}}
        before: Json = {"b": {**entry, "headers": {"x-more": HEADER}}}
        async with running_gateway({**own, "backends": before}) as gateway:
            request_id = (await gateway.chat()).headers["x-request-id"]
            after: Json = {"b": {**entry, "headers": {"x-more": "another-header-9a1f"}}}
            await gateway.app.gateway_state.change(read_settings({**own, "backends": after}))
            found = [text async for text in shown(gateway, request_id)]
            assert any("Your header is" in text for text in found)
            assert not any(HEADER in text for text in found)


async def test_a_token_that_was_refreshed_since_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def quote(connection: Connection) -> None:
        token = connection.head.partition(b"Bearer ")[2].partition(b"\r\n")[0].decode()
        said = json.dumps(ANSWER).replace('"x"', f'"Your token is {token}"').encode()
        refused = token == "token-1" and len(backend.seen) > 1
        status = "401 Unauthorized" if refused else "200 OK"
        await connection.send(answer(status, b"{}" if refused else said, b"content-type: application/json"))

    monkeypatch.setenv("REFRESH", "refresh-0")
    async with issuer_running() as issuer, faulty_backend(quote) as backend:
        refresh: Json = {"token_url": issuer.url, "refresh_token_env": "REFRESH"}
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url, "refresh": refresh}
        own: dict[str, Json] = {**settings(), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(own) as gateway:
            ids = [(await gateway.chat()).headers["x-request-id"] for _ in range(2)]
            assert issuer.asked == ["refresh-0", "refresh-0"]
            for request_id in ids:
                found = [text async for text in shown(gateway, request_id)]
                assert any("Your token is" in text for text in found)
                assert not any("token-1" in text or "token-2" in text for text in found)
