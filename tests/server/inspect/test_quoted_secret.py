"""A backend that quotes the gateway's own credential is no defect of the gateway, and the page shows nothing of it."""

import json
from typing import Final, cast

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import HEAD, Connection, answer, chunk, faulty_backend
from gateway.testing.gateway import running_gateway
from tests.server.inspect.test_routes import settings

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
