"""Tests the client's response for each response of a backend on a real wire: statuses, codes and retry headers."""

import json
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.server.backend import END, HEAD, Connection, answer, chunk, faulty_backend


def whole(body: bytes) -> bytes:
    return answer("200 OK", body, b"content-type: application/json")


def stream(*events: bytes) -> bytes:
    return HEAD + b"".join(chunk(b"data: " + event + b"\n\n") for event in events) + END


def refused(status: int, body: str = "", *headers: bytes) -> bytes:
    return answer(f"{status} x", body.encode(), b"content-type: application/json", *headers)


TEXT: Final = json.dumps(
    {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}]}
).encode()
NO_RETRY: Final = {"x-should-retry": "false"}

PROMISES: Final[dict[str, tuple[bytes, int, str, dict[str, str]]]] = {
    "400": (refused(400, '{"error":{"message":"odd","code":"c"}}'), 400, "c", {}),
    "422": (refused(422, '{"error":{"message":"odd","code":"c"}}'), 422, "c", {}),
    "401": (refused(401, '{"error":{"message":"key"}}'), 502, "upstream_auth_error", NO_RETRY),
    "403": (refused(403, '{"error":{"message":"key"}}'), 502, "upstream_auth_error", NO_RETRY),
    "404": (refused(404, '{"error":{"message":"which model"}}'), 404, "model_not_found", {}),
    "404 of an address": (refused(404, '{"error":{"message":"what"}}'), 502, "upstream_unknown_url", NO_RETRY),
    "408": (refused(408), 504, "upstream_timeout", {}),
    "429": (
        refused(429, '{"error":{"code":"rate_limit_exceeded"}}', b"retry-after: 7"),
        429,
        "rate_limit_exceeded",
        {"retry-after": "7"},
    ),
    "429 for good": (refused(429, '{"error":{"code":"insufficient_quota"}}'), 429, "insufficient_quota", NO_RETRY),
    "500": (refused(500, "<p>trace"), 502, "upstream_error", {}),
    "503": (refused(503, "", b"retry-after: 3"), 503, "upstream_overloaded", {"retry-after": "3"}),
    "504": (refused(504), 504, "upstream_timeout", {}),
    "529": (refused(529), 503, "upstream_overloaded", {}),
    "204": (b"HTTP/1.1 204 x\r\n\r\n", 502, "upstream_invalid_response", {}),
    "an empty answer": (whole(b""), 502, "upstream_invalid_response", {}),
    "no choices": (whole(b'{"choices":[]}'), 502, "upstream_invalid_response", {}),
    "an error with status 200": (whole(b'{"error":{"message":"no"}}'), 502, "upstream_error", {}),
    "an error as the first event": (stream(b'{"error":{"message":"no"}}'), 502, "upstream_error", {}),
    "an end without a finish": (stream(TEXT, b"[DONE]"), 502, "upstream_stream_truncated", {}),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", PROMISES)
async def test_promises(name: str, streamed: bool) -> None:
    raw, status, code, headers = PROMISES[name]

    async def script(connection: Connection) -> None:
        await connection.send(raw)

    async with faulty_backend(script) as backend:
        entry: Json = {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": backend.base_url}
        settings: dict[str, Json] = {
            "backends": {"b": entry},
            "models": {"*": {"backend": "b"}},
        }
        async with running_gateway(settings) as gateway:
            response = await gateway.chat(stream=streamed)
    if response.status_code == 200:
        # The text of the first event was on its way before the end came without a finish.
        assert name == "an end without a finish" and streamed
        error = json.loads(response.text.strip().rpartition("data: ")[2])["error"]
    else:
        assert response.status_code == status
        assert {name: response.headers[name] for name in headers} == headers
        error = response.json()["error"]
    assert error["code"] == code
    assert "trace" not in response.text
    assert len(backend.seen) == 1
