"""Tests the log line of a backend failure: the backend's text, the cause, the credential's variable, the phase."""

import asyncio
import json
import logging
import re
import ssl
from typing import Final

import pytest

from gateway.core.backend_status import public_text
from gateway.core.conversation import Json
from gateway.server.telemetry.access_log import reason
from gateway.testing.faults import ResponseEvents
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.promises.wire_gateway import wire_gateway
from tests.promises.wires import WIRES
from tests.server.backend import HEAD, Connection, answer, chunk, events, faulty_backend
from tests.server.conftest import HASTY, Start, settings_for

CHAT: Final = "adapters.openai_chat.backend:OpenAIChatAdapter"
SAID: Final = "CUDA out of memory on worker 3"


def failures(caplog: pytest.LogCaptureFixture) -> list[dict[str, str]]:
    """The fields of every such line."""
    lines = [line for line in caplog.messages if line.startswith("upstream_failure ")]
    return [
        {name: bare or quoted for name, quoted, bare in re.findall(r"(\w+)=(?:'((?:[^'\\]|\\.)*)'|(\S+))", line)}
        for line in lines
    ]


def native(base_url: str, **entry: Json) -> dict[str, Json]:
    chat: Json = {"adapter": CHAT, "base_url": base_url, "timeouts": {"connect": 10, "first_byte": 10}, **entry}
    return {**settings_for(base_url), "backends": {"chat": chat}, "models": {"m": {"backend": "chat"}}}


async def failing(caplog: pytest.LogCaptureFixture, reply: bytes, **fields: Json) -> dict[str, str]:
    """Returns the fields of the log line for this answer of a native backend. The client does not see the answer."""
    caplog.set_level(logging.INFO, "gateway")

    async def script(connection: Connection) -> None:
        await connection.send(reply)

    async with faulty_backend(script) as backend, running_gateway(native(backend.base_url, **fields)) as gateway:
        response = await gateway.chat()
    assert response.status_code >= 500
    assert SAID not in response.text
    (line,) = failures(caplog)
    return line


@pytest.mark.parametrize(
    "status", ["401 Unauthorized", "403 Forbidden", "500 Sorry", "503 Full", "504 Late", "302 Gone"]
)
async def test_the_words_of_a_status_are_in_the_log_and_not_in_the_answer(
    status: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = json.dumps({"error": {"message": SAID}}).encode()
    line = await failing(caplog, answer(status, said, b"content-type: application/json"))
    if status.startswith("3"):
        # A redirect is not read, and may hold a credential.
        assert line["said"] == ""
    else:
        assert line["said"] == SAID
    assert (line["phase"], line["upstream_status"]) == ("head", status[:3])


async def test_a_page_is_told_as_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    page = b"<html>\n <title>" + SAID.encode() + b"</title>\n" + b"x" * 5000
    line = await failing(caplog, answer("502 Bad Gateway", page, b"content-type: text/html"))
    assert line["said"].startswith(f"<html> <title>{SAID}</title> xxx")
    assert len(line["said"]) == 300 and line["said"].endswith("…")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("begun", [False, True])
async def test_the_words_of_an_error_in_the_answer_are_in_the_log(
    wire: str, begun: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    spoken: ResponseEvents = WIRES[wire].spoken

    async def script(connection: Connection) -> None:
        head = HEAD.replace(b"text/event-stream", spoken.media_type.encode())
        await connection.send(head, chunk(spoken.begin) if begun else b"")
        await asyncio.sleep(0.05)
        await connection.send(chunk(spoken.failure))

    async with faulty_backend(script) as backend, wire_gateway(WIRES[wire], {"m": backend}) as gateway:
        await gateway.chat(stream=True)
    (line,) = failures(caplog)
    assert line["said"] == "said in the answer"


@pytest.mark.parametrize("stream", [True, False])
async def test_the_words_of_an_event_that_is_no_chunk_are_in_the_log_when_the_answer_stays_incomplete(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    said = json.dumps({"message": SAID, "code": 500})

    async def script(connection: Connection) -> None:
        if stream:
            await connection.send(HEAD, chunk(f"event: error\ndata: {said}\n\n".encode()), b"0\r\n\r\n")
        else:
            await connection.send(answer("200 OK", said.encode(), b"content-type: application/json"))

    async with faulty_backend(script) as backend, running_gateway(native(backend.base_url)) as gateway:
        response = await gateway.chat(stream=stream)
    assert response.status_code == 502 and SAID not in response.text
    (line,) = failures(caplog)
    assert line["said"] == SAID


async def test_what_the_client_is_told_anyway_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    """The words of a 400 are for the client, and most of them quote the request."""
    caplog.set_level(logging.INFO, "gateway")

    async def script(connection: Connection) -> None:
        await connection.send(answer("400 Bad", json.dumps({"error": {"message": SAID}}).encode()))

    async with faulty_backend(script) as backend, running_gateway(native(backend.base_url)) as gateway:
        assert SAID in (await gateway.chat()).text
    (line,) = failures(caplog)
    assert line["said"] == ""


def test_a_text_that_is_cut_says_so_though_only_blanks_were_dropped() -> None:
    """Else the half of a secret at the cut would not be looked for."""
    text = "x" + " " * 1190 + "half-a-secret"
    assert public_text(text) == "x half-a-se…"


async def test_no_trust_and_no_connection_have_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")

    async def plain(connection: Connection) -> None:
        await connection.send(b"no TLS here\r\n")

    async with faulty_backend(plain) as backend:
        backend.scheme = "https"
        backend.speaks_first = True
        async with running_gateway(native(backend.base_url)) as gateway:
            await gateway.chat()
        async with running_gateway(native("http://127.0.0.1:1")) as gateway:
            await gateway.chat()
    tls, refused = failures(caplog)
    assert (tls["code"], tls["phase"], tls["cause"]) == ("upstream_tls_error", "connect", "SSLError")
    assert tls["reason"] == "WRONG_VERSION_NUMBER"
    assert (refused["cause"], refused["reason"]) == ("ConnectionRefusedError", "Connection refused")


def test_an_untrusted_certificate_has_its_own_reason() -> None:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: (_ssl.c:1002)")
    error.verify_message = "certificate has expired"
    assert reason(error) == "certificate has expired"


@pytest.mark.parametrize("status", [b"401 Unauthorized", b"403 Forbidden"])
async def test_a_refused_credential_is_named_by_its_variable(
    status: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY_OF_THE_HOUSE", "a-very-secret-key")
    said = json.dumps({"error": {"message": "Incorrect API key provided: a-very-secret-key"}}).encode()
    line = await failing(caplog, answer(status.decode(), said), api_key_env="TEST_KEY_OF_THE_HOUSE")
    assert line["credential"] == "TEST_KEY_OF_THE_HOUSE"
    assert line["said"] == "Incorrect API key provided: [redacted]"


async def test_no_credential_is_named_where_none_is_set_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    line = await failing(caplog, answer("401 Unauthorized"))
    assert line["credential"] == "-"


async def test_a_backend_that_was_asked_and_is_silent_is_past_connecting(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async def silent(connection: Connection) -> None:
        await connection.gone()

    async def closes(connection: Connection) -> None:
        connection.close()

    for script, code in ((silent, "upstream_timeout"), (closes, "upstream_connection_error")):
        caplog.clear()
        gateway, _ = await start(script, HASTY)
        await gateway.chat()
        (line,) = failures(caplog)
        assert (line["phase"], line["code"]) == ("head", code)


async def test_a_stop_of_the_gateway_is_no_failure_of_the_backend(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    begun = asyncio.Event()

    async def endless(connection: Connection) -> None:
        await connection.send(HEAD, events("text one"))
        begun.set()
        await connection.gone()

    gateway, _ = await start(endless)
    asking = asyncio.create_task(gateway.chat(stream=True))
    await begun.wait()
    gateway.app.gateway_state.stop()
    assert "server_shutdown" in (await asking).text
    assert failures(caplog) == []
    assert [line for line in caplog.messages if " code=server_shutdown " in line]
    counted = (await gateway.client.get("/metrics")).text
    assert re.findall(r"^gateway_upstream_errors_total\{.* [^0]\S*$", counted, re.MULTILINE) == []
    assert re.findall(r"^gateway_upstream_errors_total\{.* 0\.0$", counted, re.MULTILINE) != []
    assert 'gateway_errors_total{code="server_shutdown"' in counted


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "unknown_url"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("GET", "/v1/models/none", 404, "model_not_found"),
        ("POST", "/v1/explain", 400, "invalid_json"),
    ],
)
async def test_a_refusal_of_any_route_has_its_code_in_the_access_line(
    start: Start, caplog: pytest.LogCaptureFixture, method: str, path: str, status: int, code: str
) -> None:
    caplog.set_level(logging.INFO, "gateway")

    async def nobody(connection: Connection) -> None:
        raise AssertionError

    gateway, _ = await start(nobody)
    response = await _ask(gateway, method, path)
    assert (response, code) == (status, code)
    (line,) = [line for line in caplog.messages if f" {path} " in f" {line} "]
    assert f"status={status} code={code} " in line


async def _ask(gateway: RunningGateway, method: str, path: str) -> int:
    response = await gateway.client.request(
        method, path, content=b"no json" if method == "POST" else b"", headers={"content-type": "application/json"}
    )
    return response.status_code
