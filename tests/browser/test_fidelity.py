"""What the page shows is what `dragoman explain` says, what the backend got, and what the client got."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, python_process, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import STAGES, InspectorPage, ShownCell
from tests.browser.installed import BROWSER
from tests.browser.traffic import history, settings

pytestmark = BROWSER

# One of each kind: JSON, one text in JSON, protobuf in server-sent events, protobuf over gRPC.
MODELS: Final = ("demo-chat", "demo-text", "demo-agent", "demo-grpc")
ODD: Final = 'Umlaute äöü 😀, "quotes"\tand\nlines\u202e\u0000 </td>'


def trimming() -> dict[str, Json]:
    """Settings that leave out the older results of tools."""
    return {**settings(), "max_tool_results": 1}


def conversation(model: str) -> list[Json]:
    """A conversation in which every stage changes something."""
    rounds: list[Json] = []
    for number in range(3):
        function: Json = {"name": "search", "arguments": json.dumps({"for": f"{ODD} {number}"})}
        rounds.append(
            {
                "role": "assistant",
                "content": f"Step {number}",
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
            }
        )
        rounds.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"found {number}: {ODD}"})
    return [*history(model)[:2], *rounds, *history(model)[2:]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def trimmer() -> AsyncIterator[RunningGateway]:
    async with running_gateway(trimming()) as gateway:
        yield gateway


async def _explained(folder: Path, request: Mapping[str, Any]) -> Any:
    """Returns what the command says of the same request with the same settings."""
    (folder / "settings.json").write_text(json.dumps(trimming()))
    (folder / "request.json").write_text(json.dumps(request))
    arguments = ("-m", "gateway", "explain", "request.json", "--model", str(request["model"]), "--json")
    async with python_process(folder, *arguments) as process:
        output, errors = await process.communicate()
    assert output, errors
    return json.loads(output)


def _column(rows: Sequence[Sequence[ShownCell | None]], stage: str) -> list[tuple[str, list[Any]]]:
    """The messages of a stage as they are read from the table: an equal one is that of the stage before."""
    found = []
    for row in rows:
        message: tuple[str, list[Any]] | None = None
        for cell in row[: STAGES.index(stage) + 1]:
            if cell is None or cell.mark == "-":
                message = None
            elif cell.mark != "=" or cell.role is not None:
                message = (cell.role or "", [*cell.texts, *(list(call[::2]) for call in cell.calls)])
        if message is not None:
            found.append(message)
    return found


def _of_messages(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """The same of messages as the command writes them."""
    return [
        (
            message["role"],
            [
                *([message["content"]] if message.get("content") else []),
                *([call["function"]["name"], call["function"]["arguments"]] for call in message.get("tool_calls", ())),
            ],
        )
        for message in messages
    ]


async def _asked(gateway: RunningGateway, model: str, **fields: Json) -> tuple[dict[str, Any], str, str]:
    """Sends the conversation. Returns the request, its id, and the client's bytes."""
    request: dict[str, Any] = {"model": model, "messages": conversation(model), **fields}
    answer = await gateway.client.post("/v1/chat/completions", json=request)
    assert answer.status_code == 200, answer.text
    return request, answer.headers["x-request-id"], answer.text


@pytest.mark.parametrize("model", MODELS)
async def test_every_stage_is_what_the_command_explains(
    model: str, trimmer: RunningGateway, opened: Open, tmp_path: Path
) -> None:
    request, request_id, _ = await _asked(trimmer, model)
    explained = await _explained(tmp_path, request)
    async with opened(trimmer.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        await page.reveal()
        await page.open_all()
        rows = await page.messages()
        assert _column(rows, "client") == _of_messages(request["messages"])
        for stage in ("repaired", "trimmed"):
            assert _column(rows, stage) == _of_messages(explained[stage]), stage
        assert {cell.mark for row in rows for cell in row if cell} >= {"=", "~", "+"}
        rules = {
            await notice.locator(".rule").inner_text()
            for notice in await page.request(request_id).locator("li.notice").all()
        }
        assert rules == {notice["rule"] for notice in explained["diagnostics"]}


@pytest.mark.parametrize("model", MODELS)
async def test_what_was_sent_is_what_the_backend_got(model: str, trimmer: RunningGateway, opened: Open) -> None:
    _, request_id, _ = await _asked(trimmer, model)
    name = model.removeprefix("demo-")
    demo = trimmer.app.gateway_state.demo_backends
    assert demo is not None
    body = demo._running[name].requests[-1].body
    async with opened(trimmer.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        await page.reveal()
        await page.show("Sent")
        form = "Hex" if model in ("demo-agent", "demo-grpc") else "JSON"
        side = viewer.page.get_by_role("region", name="Sent to the backend")
        await side.get_by_role("button", name=form, exact=True).click()
        shown = await viewer.page.get_by_role("region", name=f"Sent bytes as {form}").evaluate("one => one.textContent")
        if form == "JSON":
            assert json.loads(shown) == json.loads(body)
        else:
            # The demo backend of gRPC has the message without its frame, which is five bytes.
            sent = _of_hex(shown)
            assert sent == body or (sent[5:] == body and int.from_bytes(sent[1:5]) == len(body))


def _of_hex(text: str) -> bytes:
    """Offset, two spaces, bytes, two spaces, characters -> the bytes."""
    return b"".join(bytes.fromhex(line[10:].partition("  ")[0]) for line in text.splitlines())


@pytest.mark.parametrize("model", MODELS)
async def test_the_chunks_are_what_the_client_got(model: str, trimmer: RunningGateway, opened: Open) -> None:
    _, request_id, got = await _asked(trimmer, model, stream=True)
    async with opened(trimmer.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        await page.reveal()
        await page.show("Answer")
        await page.open_all()
        chunks = await viewer.page.locator(".chunk .text").all_text_contents()
        assert len(chunks) > 1 and "".join(chunks) == got
        # A read that is chosen lights what came of it.
        await viewer.page.get_by_role("button", name="#0", exact=True).click()
        chosen = viewer.page.locator("tr.chosen")
        assert await chosen.count() == 1
        assert await chosen.locator(".event").count() > 0


async def test_a_copied_command_sends_the_bytes_of_the_client(trimmer: RunningGateway, opened: Open) -> None:
    _, request_id, _ = await _asked(trimmer, "demo-chat")
    async with opened(trimmer.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        await viewer.page.get_by_role("button", name="Copy", exact=True).click()
        await viewer.page.get_by_role("button", name="curl", exact=True).click()
        command = await viewer.page.get_by_role("region", name="Copy").evaluate("one => one.textContent")
    environ = {**os.environ, "DRAGOMAN_URL": trimmer.base_url, "DRAGOMAN_KEY": "none"}
    process = await asyncio.create_subprocess_exec("bash", stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ)
    output, errors = await process.communicate(command.encode())
    assert process.returncode == 0, (command, errors)
    assert json.loads(output)["choices"]
    # The words are others, but what the gateway does with them is the same.
    again, first = (await trimmer.client.get("/inspect/api/requests?limit=2")).json()["requests"]
    assert first["id"] == request_id
    assert [again[name] for name in ("changes", "rules", "stream")] == [
        first[name] for name in ("changes", "rules", "stream")
    ]
