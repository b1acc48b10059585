"""What clients of Ollama ask a gateway over real sockets, beside the scenarios of every dialect."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from adapters.ollama.client.dialect import OllamaDialect
from gateway.demo.serve import DemoBackend, serve_demo
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.ollama.client.test_conformance import read_stream, read_whole

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELLO: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
PROMPT: Final[dict[str, Any]] = {"model": "m", "prompt": "Hello"}


class Served:
    """A gateway, and the demo backend behind its only model."""

    def __init__(self, gateway: RunningGateway, backend: DemoBackend) -> None:
        self.client = gateway.client
        self.backend = backend


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[Served]:
    async with serve_demo("chat") as backend:
        settings: dict[str, Any] = {
            "backends": {"b": {"adapter": "openai_chat", "base_url": backend.base_url}},
            "models": {"m": {"backend": "b", "name": "demo-chat", "context_length": 8192}},
        }
        async with running_gateway(settings) as gateway:
            yield Served(gateway, backend)


@pytest.mark.parametrize("path", ["/", "/api/version", "/api/ps", "/api/tags"])
async def test_probes_are_answered(served: Served, path: str) -> None:
    assert (await served.client.get(path)).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/version"])
async def test_heads_of_probes_are_answered_without_a_body(served: Served, path: str) -> None:
    answer = await served.client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


async def test_the_gateway_says_what_it_is(served: Served) -> None:
    assert (await served.client.get("/")).text == "Ollama is running"
    version = (await served.client.get("/api/version")).json()["version"]
    # Copilot compares the numbers with 0.6.4.
    assert tuple(map(int, version.split("."))) >= (0, 6, 4)
    assert (await served.client.get("/api/ps")).json() == {"models": []}


@pytest.mark.parametrize("field", ["model", "name"])
@pytest.mark.parametrize("name", ["m", "m:latest"])
async def test_a_model_is_shown(served: Served, field: str, name: str) -> None:
    shown = (await served.client.post("/api/show", json={field: name})).json()
    assert shown["capabilities"] == ["completion", "tools", "vision"]
    assert shown["model_info"] == {
        "general.architecture": "dragoman",
        "general.basename": "m",
        "dragoman.context_length": 8192,
    }


async def test_a_model_that_is_not_there_is_not_shown(served: Served) -> None:
    answer = await served.client.post("/api/show", json={"model": "other"})
    assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")
    answer = await served.client.post("/api/show", json={})
    assert (answer.status_code, answer.json()["param"]) == (400, "model")


@pytest.mark.parametrize("body", [{"model": "m", "stream": False}, {"name": "m:latest"}])
async def test_a_model_that_is_served_is_pulled_without_a_download(served: Served, body: dict[str, Any]) -> None:
    """As Home Assistant does for a name that is not in the list, which has its tag."""
    answer = await served.client.post("/api/pull", json=body)
    assert (answer.status_code, answer.json()) == (200, {"status": "success"})
    answer = await served.client.post("/api/pull", json={"model": "other"})
    assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")


async def test_what_a_client_lists_it_can_ask_at_every_route(served: Served) -> None:
    (listed,) = (await served.client.get("/api/tags")).json()["models"]
    name = listed["model"]
    assert name == "m:latest" and listed["details"]["context_length"] == 8192
    chat = await served.client.post("/api/chat", json={**HELLO, "model": name, "stream": False})
    assert chat.json()["model"] == name and chat.json()["message"]["content"]
    # As Copilot does.
    completion = await served.client.post("/v1/chat/completions", json={**HELLO, "model": name})
    assert completion.json()["choices"][0]["message"]["content"] == chat.json()["message"]["content"]
    assert (await served.client.get(f"/v1/models/{name}")).json()["id"] == "m"


@pytest.mark.parametrize("route", [route for route in OllamaDialect.routes if route.kind == "refused"], ids=str)
async def test_what_needs_models_on_a_disk_is_refused(served: Served, route: Any) -> None:
    answer = await served.client.request(route.method, route.path, json={"model": "m"})
    assert (answer.status_code, answer.json()["code"]) == (501, "unsupported_operation")


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        ("/api/chat", {"model": "m", "messages": []}, "load"),
        ("/api/generate", {"model": "m"}, "load"),
        ("/api/generate", {"model": "m", "keep_alive": 0}, "unload"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_is_loaded_without_its_backend(
    served: Served, path: str, fields: dict[str, Any], reason: str, stream: bool
) -> None:
    before = served.backend.requests
    answer = await served.client.post(path, json={**fields, "stream": stream})
    read = read_whole(answer.content)
    assert (answer.status_code, read.text, read.finish) == (200, "", reason)
    assert answer.headers["x-dragoman-backend"] == "b"
    assert served.backend.requests == before


async def test_a_model_that_is_not_there_cannot_be_loaded(served: Served) -> None:
    answer = await served.client.post("/api/generate", json={"model": "other"})
    assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")


async def test_a_prompt_is_answered_like_a_chat(served: Served) -> None:
    chat = read_whole((await served.client.post("/api/chat", json={**HELLO, "stream": False})).content)
    whole = read_whole((await served.client.post("/api/generate", json={**PROMPT, "stream": False})).content)
    answer = await served.client.post("/api/generate", json=PROMPT)
    streamed = read_stream(answer.content)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert (whole.text, whole.finish, whole.usage) == (chat.text, chat.finish, chat.usage)
    assert (streamed.text, streamed.finish, streamed.usage) == (chat.text, chat.finish, chat.usage)


async def test_notices_are_told_on_demand(served: Served) -> None:
    body = {**HELLO, "options": {"num_ctx": 4096}, "think": False}
    answer = await served.client.post("/api/chat", json=body, headers={"x-dragoman-explain": "1"})
    assert "FIELD_NOT_SENT" in read_stream(answer.content).notices


async def test_thinking_is_left_out_for_a_client_that_declines_it(served: Served) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Think. How are you?"}]}
    shown = read_stream((await served.client.post("/api/chat", json=body)).content)
    declined = read_stream((await served.client.post("/api/chat", json={**body, "think": False})).content)
    assert shown.reasoning and not declined.reasoning
    assert shown.text == declined.text


async def test_requests_are_explained(served: Served) -> None:
    for body in (HELLO, PROMPT, {**PROMPT, "model": "m:latest"}):
        told = (await served.client.post("/v1/explain", params={"dialect": "ollama"}, json=body)).json()
        assert told["backend"] == "b" and told["encoded"]["decoded"]["model"] == "demo-chat"


async def test_a_request_that_no_backend_gets_has_nothing_to_explain(served: Served) -> None:
    for body in ({"model": "m", "messages": []}, {"model": "m", "prompt": ""}):
        answer = await served.client.post("/v1/explain", params={"dialect": "ollama"}, json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")


async def test_the_form_of_a_web_page_is_refused(served: Served) -> None:
    answer = await served.client.post("/api/chat", content=json.dumps(HELLO))
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
