"""A backend that answers 404 because its address is wrong: no client reads that its model is unknown, and the log says
which address it was. Each body is what a provider, a server or a proxy answers there."""

import json
import logging
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.registry import load_dialect
from gateway.testing.faulty import Connection, Script, answer, faulty_backend
from tests.promises.wire_gateway import wire_gateway
from tests.promises.wires import WIRES
from tests.tiers import sample

# Bodies of a wrong address, of which some name the path, and so the model of Gemini's wire.
UNKNOWN: Final[dict[str, Json]] = {
    "nginx": "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>nginx</body>\r\n</html>",
    "google": "<!DOCTYPE html>\n<title>Error 404</title><p>The requested URL <code>/models/m:x</code> was not found",
    "go": "404 page not found\n",
    "openai": {
        "error": {"message": "Invalid URL (POST /v1/models/chat)", "type": "invalid_request_error", "code": None}
    },
    "groq": {"error": {"message": "Unknown request URL: POST /models/x. Please check the URL.", "code": "unknown_url"}},
    "fastapi": {"detail": "Not Found"},
    "llama.cpp": {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
    "anthropic": {"type": "error", "error": {"type": "not_found_error", "message": "Not Found"}},
    "mistral": {"message": "no Route matched with those values"},
    "azure": {"error": {"code": "404", "message": "Resource not found"}},
    "deepseek": {"error_msg": "Not Found. Please check the configuration."},
    "express": "<pre>Cannot POST /v1/models/chat</pre>",
    "express, json": {"error": "Cannot POST /v1/models/chat"},
    "nothing": "",
}
# Bodies about the model.
MODEL: Final[dict[str, Json]] = {
    "openai": {"error": {"message": "The model `m` does not exist or you do not have access to it.", "code": "x"}},
    "code alone": {"error": {"message": "Not found", "code": "model_not_found"}},
    "anthropic": {"type": "error", "error": {"type": "not_found_error", "message": "model: m"}},
    "gemini": {
        "error": {"code": 404, "message": "models/m is not found for API version v1beta", "status": "NOT_FOUND"}
    },
    "ollama": {"error": "model 'm' not found"},
    "azure": {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}},
    "openrouter": {"error": {"message": "No endpoints found for it.", "code": 404}},
    "name alone": {"error": {"message": "'m' not found"}},
}
# Bodies about something that the request refers to.
RESOURCE: Final[dict[str, Json]] = {
    "anthropic": {"type": "error", "error": {"type": "not_found_error", "message": "File not found: file_011"}},
    "openai": {"error": {"message": "No such File object: file-1", "code": None}},
    "gemini": {"error": {"code": 404, "message": "Requested entity was not found.", "status": "NOT_FOUND"}},
    "cache": {"error": {"code": 404, "message": "CachedContent not found (or permission denied)"}},
    "response": {"error": {"message": "Previous response with id 'resp_1' not found."}},
}
DIALECTS: Final = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
    "ollama": "/api/chat",
}
SPEAKS: Final = ("native", "messages", "responses", "generate_content", "text")


def _script(body: Json) -> Script:
    written, kind = (body, "text/html") if isinstance(body, str) else (json.dumps(body), "application/json")
    sent = answer("404 Not Found", written.encode(), b"content-type: " + kind.encode())

    async def script(connection: Connection) -> None:
        await connection.send(sent)

    return script


async def _answers(wire: str, body: Json, only: tuple[str, ...] = tuple(DIALECTS)) -> tuple[list[tuple[int, str]], str]:
    async with faulty_backend(_script(body)) as backend, wire_gateway(WIRES[wire], {"m": backend}) as gateway:
        found = []
        for dialect in only:
            asked = load_dialect(dialect).example("m")
            response = await gateway.client.post(DIALECTS[dialect], json={**asked, "stream": False})
            found.append((response.status_code, response.text))
        return found, backend.base_url


@sample()
@pytest.mark.parametrize("server", UNKNOWN)
@pytest.mark.parametrize("wire", SPEAKS)
async def test_a_wrong_address_is_no_unknown_model(wire: str, server: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")
    answers, base_url = await _answers(wire, UNKNOWN[server])
    for status, text in answers:
        assert status == 502, text
        assert "model_not_found" not in text
        assert "base_url" in text
        assert base_url not in text
    lines = [line for line in caplog.messages if " code=upstream_unknown_url " in line and "upstream_failure" in line]
    assert len(lines) == len(DIALECTS)
    assert all(f"nothing at {base_url}/" in line for line in lines)


@sample()
@pytest.mark.parametrize("server", RESOURCE)
@pytest.mark.parametrize("wire", SPEAKS)
async def test_what_a_request_refers_to_is_neither(wire: str, server: str) -> None:
    """The client reads the provider's words, and can send what it named."""
    answers, _ = await _answers(wire, RESOURCE[server], ("openai_chat", "openai_responses", "anthropic_messages"))
    assert [status for status, _ in answers] == [404, 404, 404]
    assert json.loads(answers[0][1])["error"]["code"] == "not_found"
    said = RESOURCE[server]
    assert isinstance(said, dict) and isinstance(error := said["error"], dict)
    assert str(error["message"]) in json.loads(answers[0][1])["error"]["message"]


@sample()
@pytest.mark.parametrize("server", MODEL)
@pytest.mark.parametrize("wire", SPEAKS)
async def test_an_unknown_model_is_one(wire: str, server: str) -> None:
    answers, _ = await _answers(wire, MODEL[server], ("openai_chat", "openai_responses", "anthropic_messages"))
    assert [status for status, _ in answers] == [404, 404, 404]
    assert "model_not_found" in answers[0][1]
