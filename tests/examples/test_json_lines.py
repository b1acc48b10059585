"""Tests a dialect of a third-party package with the kit, and in a real gateway that finds, serves and lists it."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from gateway.core.conversation import Conversation, ToolCall, Turn
from gateway.testing.dialect_checks import CHECKS, ClientAnswer, DialectCase, DialectCheck
from gateway.testing.dialect_field_checks import EXAMPLES
from gateway.testing.gateway import gateway_command
from tests.examples.json_lines.json_lines_dialect import ENDS, ROLES, JsonLinesDialect
from tests.paths import ROOT
from tests.server.api.test_keep_alive import comes_true

PACKAGE: Final = ROOT / "tests" / "examples" / "json_lines"
SENDERS: Final = {role: sender for sender, role in ROLES.items()}
KEY: Final = "a-key-of-this-test"
ORPHANED: Final = '[{"from": "human", "text": "hi"}, {"from": "tool", "text": "x", "answers": "nobody"}]'
# What its requests can say.
KNOWN: Final = frozenset({"model", "tools", "tool description", "tool schema", "system", "later system"})
DEMOS: Final = ("demo-chat", "demo-responses", "demo-text", "demo-agent")


def write(conversation: Conversation) -> bytes:
    body: dict[str, Any] = {
        "model": conversation.model,
        "lines": [line for turn in conversation.turns for line in lines(turn)],
        "stream": conversation.stream,
        "tools": [
            {"name": tool.name, "description": tool.description, "schema": tool.parameters}
            for tool in conversation.tools
        ],
    }
    return json.dumps(body).encode()


def lines(turn: Turn) -> list[dict[str, Any]]:
    if turn.results:
        return [{"from": "tool", "answers": result.call_id, "text": result.text} for result in turn.results]
    calls = [{"id": call.id, "name": call.name, "input": json.loads(call.arguments)} for call in turn.calls]
    return [{"from": SENDERS[turn.role], "text": turn.text, "calls": calls}]


def read_stream(data: bytes) -> ClientAnswer:
    text, thought, end, error = "", "", None, None
    calls: list[ToolCall] = []
    tokens: list[int] | None = None
    notices: tuple[str, ...] = ()
    for number, line in enumerate(data.split(b"\n")[:-1]):
        assert end is None and error is None, "a line after the last one"
        found = json.loads(line)
        assert number or found.keys() == {"id", "model"} or "failed" in found
        text += found.get("text", "")
        thought += found.get("thought", "")
        calls += [call_of(found["call"])] if "call" in found else []
        end, tokens, notices = found.get("end"), found.get("tokens"), tuple(found.get("notices", ()))
        error = found["failed"]["message"] if "failed" in found else None
    return ClientAnswer(text, thought, tuple(calls), end, tokens_of(tokens), notices, error)


def read_whole(body: bytes) -> ClientAnswer:
    answer = json.loads(body)
    calls = tuple(map(call_of, answer["calls"]))
    notices = tuple(answer.get("notices", ()))
    return ClientAnswer(
        answer["text"], answer["thought"], calls, answer["end"], tokens_of(answer.get("tokens")), notices
    )


def call_of(call: dict[str, Any]) -> ToolCall:
    return ToolCall(call["id"], call["name"], json.dumps(call["input"]))


def tokens_of(tokens: list[int] | None) -> tuple[int, int] | None:
    return None if tokens is None else (tokens[0], tokens[1])


CASE: Final = DialectCase(
    JsonLinesDialect,
    write,
    read_stream,
    read_whole,
    read_error=lambda body: str(json.loads(body)["failed"]["message"]),
    read_models=lambda body: list(json.loads(body)["models"]),
    finishes=ENDS,
    streams_by_default=True,
    lacks=frozenset(EXAMPLES) - KNOWN,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_dialect_conforms(check: DialectCheck) -> None:
    check(CASE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built and installed into a folder of its own, without a network."""
    source = tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "__init__.py"))
    target = tmp_path_factory.mktemp("installed")
    install = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *install, str(source)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return target


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that holds the log of the gateway."""
    return tmp_path_factory.mktemp("log") / "gateway.log"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(installed: Path, log: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.Client]:
    """A client of `dragoman demo` in a process of its own, with the package on its path."""
    folder = tmp_path_factory.mktemp("gateway")
    paths = os.pathsep.join((str(installed), str(ROOT)))
    with log.open("w") as stderr:
        async with gateway_command(
            folder, None, "demo", "--port", "0", stderr=stderr.fileno(), PYTHONPATH=paths, DRAGOMAN_API_KEYS=KEY
        ) as command:
            await command.wait_ready()
            headers = {"x-lines-key": KEY}
            with httpx.Client(base_url=command.base_url, timeout=20, trust_env=False, headers=headers) as client:
                yield client


def ask(gateway: httpx.Client, model: str, text: str, **fields: object) -> httpx.Response:
    body = {"model": model, "lines": [{"from": "human", "text": text}], **fields}
    return gateway.post("/lines/chat", json=body)


@pytest.mark.parametrize("model", DEMOS)
def test_every_demo_backend_answers_whole_and_streamed(gateway: httpx.Client, model: str) -> None:
    streamed, whole = ask(gateway, model, "Hello"), ask(gateway, model, "Hello", stream=False)
    assert streamed.headers["content-type"] == "application/x-ndjson"
    assert whole.headers["content-type"] == "application/json"
    assert streamed.headers["x-dragoman-backend"] == whole.headers["x-dragoman-backend"] == model
    answer = read_stream(streamed.content)
    assert answer.text and answer.finish == "done"
    assert read_whole(whole.content).text == answer.text


@pytest.mark.parametrize("model", DEMOS)
def test_a_tool_is_called_and_its_result_is_read(gateway: httpx.Client, model: str) -> None:
    tool = {
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
    question = "What is the weather in Paris? Use get_weather."
    first = read_stream(ask(gateway, model, question, tools=[tool]).content)
    (call,) = first.calls
    assert (call.name, first.finish) == ("get_weather", "call")
    made = {"id": call.id, "name": call.name, "input": json.loads(call.arguments)}
    history = [
        {"from": "human", "text": question},
        {"from": "model", "text": first.text, "calls": [made]},
        {"from": "tool", "text": "Sunny, 21 degrees.", "answers": call.id},
    ]
    body = {"model": model, "lines": history, "tools": [tool]}
    last = read_stream(gateway.post("/lines/chat", json=body).content)
    assert last.text and last.finish == "done"


@pytest.mark.parametrize("stream", [True, False])
def test_an_early_error_is_a_status_in_the_words_of_the_dialect(gateway: httpx.Client, stream: bool) -> None:
    unknown = ask(gateway, "nowhere", "Hello", stream=stream)
    assert (unknown.status_code, unknown.json()["failed"]["code"]) == (404, "model_not_found")
    wrong = ask(gateway, "demo-chat", "Hello", stream="sometimes")
    assert (wrong.status_code, wrong.json()["failed"]["field"]) == (400, "stream")
    refused = ask(gateway, "demo-agent", "[[scenario:http_429_endless]]", stream=stream)
    assert (refused.status_code, refused.json()["failed"]["code"]) == (429, "rate_limit_exceeded")


def test_a_late_error_is_the_last_line(gateway: httpx.Client) -> None:
    response = ask(gateway, "demo-agent", "[[scenario:disconnect_fin]]")
    assert response.status_code == 200
    answer = read_stream(response.content)
    assert answer.text and answer.error and answer.finish is None


def test_the_models_are_listed_in_the_form_of_the_dialect(gateway: httpx.Client) -> None:
    listed = [f"demo-{kind}" for kind in ("agent", "chat", "messages", "responses", "gemini", "text", "grpc")]
    assert gateway.get("/lines/models").json() == {"models": listed}


def test_the_key_stands_where_the_dialect_has_it(gateway: httpx.Client) -> None:
    for path in ("/lines/chat", "/lines/models"):
        method = "POST" if path == "/lines/chat" else "GET"
        refused = gateway.request(method, path, headers={"x-lines-key": "wrong", "authorization": f"Bearer {KEY}"})
        assert (refused.status_code, refused.json()["failed"]["code"]) == (401, "invalid_api_key")
        assert "X-Lines-Key: KEY" in refused.json()["failed"]["message"]
    assert gateway.get("/v1/models").status_code == 401
    assert gateway.get("/v1/models", headers={"authorization": f"Bearer {KEY}"}).status_code == 200


def test_a_wrong_method_is_refused_in_the_form_of_the_dialect(gateway: httpx.Client) -> None:
    refused = gateway.get("/lines/chat")
    assert (refused.status_code, refused.json()["failed"]["code"]) == (405, "method_not_allowed")


def test_requests_are_explained(gateway: httpx.Client) -> None:
    bearer = {"authorization": f"Bearer {KEY}"}
    body = {"model": "demo-text", "lines": [{"from": "human", "text": "Hello"}]}
    told = gateway.post("/v1/explain", params={"dialect": "json_lines"}, json=body, headers=bearer)
    assert (told.status_code, told.json()["backend"]) == (200, "demo-text")
    assert "Hello" in told.json()["text"]
    unknown = gateway.post("/v1/explain", params={"dialect": "morse"}, json=body, headers=bearer)
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "dialect")
    assert "json_lines" in unknown.json()["error"]["message"]


def test_the_document_shows_the_routes(gateway: httpx.Client) -> None:
    document = gateway.get("/openapi.json", headers={"authorization": f"Bearer {KEY}"}).json()
    chat = document["paths"]["/lines/chat"]["post"]
    assert chat["security"] == [{"x-lines-key": []}]
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert named == document["components"]["schemas"].keys()
    assert chat["responses"]["404"]["content"]["application/json"]["schema"]["$ref"].endswith("/LinesError")


async def test_what_is_mended_is_logged_at_the_place_that_the_client_knows(gateway: httpx.Client, log: Path) -> None:
    body = {"model": "demo-chat", "lines": json.loads(ORPHANED)}
    answer = await asyncio.to_thread(gateway.post, "/lines/chat", json=body)
    assert answer.status_code == 200
    assert await comes_true(lambda: " repair lines[1] TOOL_ORPHAN: " in log.read_text())


def test_a_saved_request_is_explained_with_the_places_that_the_client_knows(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text(ORPHANED)
    ran = run(installed, tmp_path, "explain", "--dialect", "json_lines", "saved.json")
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"lines\[1\]\S* TOOL_ORPHAN: ", ran.stdout) and "repair lines[1] TOOL_ORPHAN" in ran.stdout
    assert "messages[" not in ran.stdout


def test_saved_requests_are_checked(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text(ORPHANED)
    ran = run(installed, tmp_path, "lint", "--dialect", "json_lines", "saved.json")
    assert ran.returncode == 1, ran.stderr
    assert re.search(r"lines\[1\]\S*: TOOL_", ran.stdout)


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in this folder, with the package on its path."""
    environ = {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{ROOT}", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "gateway", *arguments]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=60)
