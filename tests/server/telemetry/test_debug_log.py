"""Tests the log block of a request for any conversation: it never changes the backend request."""

import logging

import pytest

from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.server.telemetry.access_log import AccessLog
from gateway.server.telemetry.debug_log import log_request
from gateway.server.telemetry.request_context import Observers, RequestContext
from gateway.server.upstream.backends import Backend
from gateway.settings import BackendSettings
from gateway.testing.gateway import running_gateway
from tests.server.conftest import settings_for

# An assistant message without content, one whose calls were not stored, a result nobody asked for.
ODD = b"""{"model": "auto", "messages": [
    {"role": "user", "content": "question"},
    {"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]},
    {"role": "tool", "tool_call_id": "a", "content": "result"},
    {"role": "assistant", "content": null},
    {"role": "tool", "tool_call_id": "x", "content": null}
]}"""


def _logged(caplog: pytest.LogCaptureFixture, level: int, body: bytes = ODD) -> tuple[bytes, list[str]]:
    caplog.clear()
    caplog.set_level(level, "gateway")
    backend = Backend("agent", BackendSettings("adapters.warp.backend:WarpAdapter", "http://x"), 1 << 20)
    exchange = Exchange(backend.adapter, decode(body), Policy())
    context = RequestContext("POST", "/", "other", {}, Observers(AccessLog()))
    context.note(exchange.notices)
    log_request(context, backend, exchange, body)
    return exchange.request.body, [record.getMessage() for record in caplog.records]


def test_no_level_changes_or_fails_a_request(caplog: pytest.LogCaptureFixture) -> None:
    sent = {_logged(caplog, level)[0] for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)}
    assert len(sent) == 1


def test_the_lines_people_grep_for_stand_close_together(caplog: pytest.LogCaptureFixture) -> None:
    sound = ODD[: ODD.index(b',\n    {"role": "assistant", "content": null}')] + b"]}"
    _, lines = _logged(caplog, logging.DEBUG, sound)
    head = lines.index("[Warp Request] Submitting to Warp API:")
    assert lines[head - 1] == "=" * 60
    assert "  Tool results: 1" in lines[head : head + 20]
    assert "  History messages: 1" in lines[head : head + 20]
    assert "Extracted tool result: tool_call_id=a, content_len=6" in lines
    assert "Added implicit continuation instruction for tool results" in lines


def test_the_results_of_the_block_are_those_that_were_extracted(caplog: pytest.LogCaptureFixture) -> None:
    _, lines = _logged(caplog, logging.DEBUG)
    extracted = [line for line in lines if line.startswith("Extracted tool result: ")]
    assert f"  Tool results: {len(extracted)}" in lines


def test_a_body_is_shown_without_what_looks_like_a_key(caplog: pytest.LogCaptureFixture) -> None:
    _, lines = _logged(
        caplog, logging.DEBUG, ODD.replace(b"question", b"question sk-0123456789abcdef, Bearer abcdefgh")
    )
    (shown,) = [line for line in lines if line.startswith("  Client request: ")]
    assert "question [redacted]" in shown and "0123456789" not in shown and "abcdefgh" not in shown


def test_no_level_shows_contents_unless_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gateway")
    backend = Backend("agent", BackendSettings("adapters.warp.backend:WarpAdapter", "http://x"), 1 << 20)
    exchange = Exchange(backend.adapter, decode(ODD), Policy())
    log_request(RequestContext("POST", "/", "other", {}, Observers(AccessLog())), backend, exchange, None)
    assert not [line for line in caplog.messages if "question" in line]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/chat/completions", {"authorization": "Bearer swordfish-1"}),
        ("/v1/messages", {"x-api-key": "swordfish-1"}),
        ("/v1beta/models/m:generateContent?key=swordfish-1", {}),
    ],
)
async def test_a_body_is_shown_without_the_key_of_its_request(
    path: str, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    log: dict[str, Json] = {"file": None, "bodies": True, "level": "debug"}
    settings: dict[str, Json] = {**settings_for("http://127.0.0.1:1"), "log": log}
    async with running_gateway(settings) as gateway:
        caplog.set_level(logging.DEBUG, "gateway")
        text = "my key is swordfish-1"
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
        gemini = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        await gateway.client.post(path, json=gemini if "Content" in path else body, headers=headers)
    (shown,) = [line for line in caplog.messages if line.startswith("  Client request: ")]
    assert "my key is [redacted]" in shown
    assert "swordfish-1" not in "\n".join(caplog.messages)
