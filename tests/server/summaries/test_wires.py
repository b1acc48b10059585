"""A history is summarised and sent short over the wire of every backend, whatever the dialect of the client: with the
demo backends, whose scripted model writes summaries, too."""

import asyncio
from typing import Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.registry import load_dialect
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.summaries.scripted import WINDOW, agent_history

BACKENDS: Final[dict[str, dict[str, Json]]] = {
    "chat": {"adapter": "openai_chat"},
    "messages": {"adapter": "anthropic_messages"},
    "responses": {"adapter": "openai_responses"},
    "gemini": {"adapter": "gemini"},
    "text": {"adapter": "text"},
    "agent": {"adapter": "warp"},
    "grpc": {"adapter": "proto", "preset": "demo"},
}
# The path of each dialect, and what its request needs beside the history.
DIALECTS: Final[dict[str, tuple[str, dict[str, Json]]]] = {
    "openai_chat": ("/v1/chat/completions", {"model": "m"}),
    "openai_responses": ("/v1/responses", {"model": "m"}),
    "anthropic_messages": ("/v1/messages", {"model": "m", "max_tokens": 1000}),
    "ollama": ("/api/chat", {"model": "m", "stream": False}),
    "gemini": ("/v1beta/models/m:generateContent", {}),
}
# The scripted model counts words, about half of the tokens that are estimated.
LONG: Final = 80
HEAD: Final = RequestHead("")


def settings(demo: str) -> dict[str, Json]:
    entry: Json = {**BACKENDS[demo], "base_url": f"demo:{demo}"}
    return {
        "compress": {"enabled": True},
        "state": {"deadline_ms": 10_000},
        "backends": {"b": entry},
        "models": {"m": {"backend": "b", "context_length": WINDOW}},
    }


async def settled(gateway: RunningGateway) -> None:
    summaries = gateway.app.gateway_state.summaries
    assert summaries is not None
    while running := summaries.running:
        await asyncio.wait(running)


def rules(response: httpx.Response) -> list[str]:
    """Returns the notices of a response whose request asked for them."""
    assert response.status_code == 200, response.text
    return [notice["rule"] for notice in response.json()["dragoman"]["diagnostics"]]


@pytest.mark.parametrize("demo", BACKENDS)
async def test_a_history_is_summarised_by_every_backend(demo: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway")
    async with running_gateway(settings(demo)) as gateway:
        told = []
        for rounds in range(LONG, LONG + 3):
            history = agent_history(rounds)
            history.append({"role": "user", "content": "What is in the last file?"})
            response = await gateway.client.post(
                "/v1/chat/completions",
                json={"model": "m", "messages": history},
                headers={"x-dragoman-explain": "1"},
            )
            told.append("HISTORY_SUMMARIZED" in rules(response))
            await settled(gateway)
        assert told == [False, False, True], caplog.text
        assert caplog.text.count("SUMMARY_STORED") == 1


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_client_of_every_dialect_is_sent_short(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway")
    dialect = load_dialect(name)
    path, fields = DIALECTS[name]
    async with running_gateway(settings("chat")) as gateway:
        changes = []
        for rounds in range(LONG, LONG + 3):
            # Without the system text, for which each dialect has its own place.
            history = load_dialect().decode(Document({"model": "m", "messages": agent_history(rounds)[1:]}), HEAD)
            messages = [one for turn in history.conversation.turns for one in dialect.encode_turn(turn)]
            response = await gateway.client.post(path, json={**fields, dialect.paths.param("messages"): messages})
            assert response.status_code == 200, response.text
            changes.append("HISTORY_SUMMARIZED" in caplog.text)
            await settled(gateway)
        assert changes == [False, False, True], caplog.text


async def test_a_client_that_refers_to_stored_responses_is_sent_short(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway")
    async with running_gateway(settings("chat")) as gateway:
        previous, changes = None, []
        for number in range(12):
            text = "\n".join(
                f"Line {number}-{line} of the log says value_{number}_{line} is fine." for line in range(130)
            )
            response = await gateway.client.post(
                "/v1/responses", json={"model": "m", "input": text, "previous_response_id": previous}
            )
            assert response.status_code == 200, response.text
            previous = response.json()["id"]
            changes.append("state=1" in response.headers.get("x-dragoman-changes", ""))
            await settled(gateway)
        # Each request is short by itself; what it refers to is long.
        assert changes[-1], caplog.text
