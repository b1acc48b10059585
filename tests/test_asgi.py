"""The gateway behind stock uvicorn, with uvicorn's own protocols: real processes, and what it then still promises."""

import asyncio
import gzip
import json
import re
import signal
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from starlette.types import Message, Scope

from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_chat.client.stream import ChatStreamEncoder
from gateway.asgi import Application, changed_unused, is_local
from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.server.api.client_response import ClientResponse
from gateway.server.http.asgi_writer import AsgiConnection, AsgiWriter, through_asgi
from gateway.server.http.websocket_writer import AsgiWebSocket
from gateway.settings import ServerSettings
from gateway.testing.gateway import hello, python_process, running_gateway
from tests.server.backend import END, HEAD, Connection, answer, events, faulty_backend
from tests.server.conftest import settings_for
from tests.server.websocket_client import Denied, Place, connected, opened, same, texts, upgrade
from tests.tiers import sample

PROTOCOLS: Final = ("httptools", "h11")
DIALECT: Final = OpenAIChatDialect()
ENCODER: Final = ChatStreamEncoder("1", 0, "m")
# What differs between two answers.
VARYING: Final = re.compile(rb'"(id|created)":("[^"]*"|\d+)')


class Stock:
    """A running uvicorn. `log` is what it has written so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log = ""
        self.base_url = ""

    async def wait_ready(self) -> None:
        async with asyncio.timeout(40):
            while not (found := re.search(r"running on (http://\S+)", self.log)):
                assert self.process.stderr is not None
                line = await self.process.stderr.readline()
                assert line, self.log
                self.log += line.decode()
        self.base_url = found[1]

    @property
    def host(self) -> str:
        return "127.0.0.1"

    @property
    def port(self) -> int:
        return int(self.base_url.rpartition(":")[2])

    async def ended(self) -> int:
        async with asyncio.timeout(40):
            _, errors = await self.process.communicate()
        self.log += errors.decode()
        assert self.process.returncode is not None
        return self.process.returncode


@asynccontextmanager
async def uvicorn_running(folder: Path, settings: Mapping[str, Json], *arguments: str) -> AsyncIterator[Stock]:
    (folder / "settings.json").write_text(json.dumps(settings))
    async with python_process(
        folder,
        *("-m", "uvicorn", "gateway.asgi:app", "--port", "0", "--no-use-colors", *arguments),
        environ={"DRAGOMAN_SETTINGS": "settings.json"},
    ) as process:
        yield Stock(process)


async def by_word(connection: Connection) -> None:
    """What the client's text asks for."""
    if b"refused" in connection.body:
        await connection.send(answer("429 Too Many", b"slow down"))
    elif b"cut" in connection.body:
        await connection.send(HEAD, events("text one"), END)
    elif b"stalled" in connection.body:
        await connection.send(HEAD, events("text one"))
        await connection.gone()
    else:
        await connection.send(HEAD, events("text one"), events("text two", "finish"), END)


async def answers(base_url: str) -> list[tuple[int, str, bytes]]:
    """Status, content type and body of one request of each kind, without what differs between two gateways."""

    async def one(method: str, path: str, body: Json = None) -> tuple[int, str, bytes]:
        response = await client.request(method, path, json=body, headers={"x-request-id": "mine"})
        assert response.headers["x-request-id"] == "mine"
        return response.status_code, response.headers["content-type"], VARYING.sub(b"", response.content)

    async def packed(coding: str, body: bytes) -> tuple[int, str, bytes]:
        headers = {"content-type": "application/json", "content-encoding": coding, "x-request-id": "mine"}
        response = await client.post(chat, content=body, headers=headers)
        return response.status_code, response.headers["content-type"], VARYING.sub(b"", response.content)

    def said(word: str, **fields: Json) -> Json:
        return {**hello(), "messages": [{"role": "user", "content": word}], **fields}

    chat = "/v1/chat/completions"
    async with httpx.AsyncClient(base_url=base_url, timeout=20) as client:
        return [
            await one("POST", chat, said("whole")),
            await one("POST", chat, said("streamed", stream=True)),
            await one("POST", chat, said("refused")),
            await one("POST", chat, said("cut", stream=True)),
            await one("POST", chat, said("large " * 100_000)),
            await one("POST", chat, said("x" * (2 << 20))),
            await one("POST", chat, {**hello("unknown")}),
            await one("GET", "/v1/models"),
            await one("GET", "/nowhere"),
            await one("GET", "/readyz"),
            await packed("gzip", gzip.compress(json.dumps(said("whole")).encode())),
            await packed("deflate", zlib.compress(json.dumps(said("large " * 30_000)).encode())),
            await packed("gzip", gzip.compress(b" " * (8 << 20))),
            await packed("gzip", gzip.compress(b"{}")[:-1]),
            await packed("br", b"x"),
        ]


@sample(lambda protocol: 1)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_kind_of_answer_is_the_one_of_our_own_server(tmp_path: Path, protocol: str) -> None:
    async with faulty_backend(by_word) as backend:
        settings = settings_for(backend.base_url, max_body_mb=1)
        async with running_gateway(settings) as ours:
            expected = await answers(ours.base_url)
        plain, compressed = [200, 200, 429, 200, 200, 413, 404, 200, 404, 200], [200, 200, 413, 400, 415]
        assert [status for status, _, _ in expected] == plain + compressed
        async with uvicorn_running(tmp_path, settings, "--http", protocol) as stock:
            await stock.wait_ready()
            assert await answers(stock.base_url) == expected
            stock.process.send_signal(signal.SIGTERM)
            await stock.ended()
    assert stock.log.count("status=200 code=-") == 7
    assert "Traceback" not in stock.log and "without completing" not in stock.log


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_client_that_leaves_ends_the_backends_answer(tmp_path: Path, protocol: str) -> None:
    async with (
        faulty_backend(by_word) as backend,
        uvicorn_running(tmp_path, settings_for(backend.base_url), "--http", protocol) as stock,
    ):
        await stock.wait_ready()
        body = {**hello(), "messages": [{"role": "user", "content": "stalled"}], "stream": True}
        async with (
            httpx.AsyncClient(timeout=20) as client,
            client.stream("POST", f"{stock.base_url}/v1/chat/completions", json=body) as response,
        ):
            assert "one" in await anext(response.aiter_text())
        async with asyncio.timeout(10):
            await backend.closed.wait()
        stock.process.send_signal(signal.SIGTERM)
        await stock.ended()
    assert "code=client_gone" in stock.log


@pytest.mark.parametrize("library", ["wsproto", "websockets"])
async def test_a_websocket_is_served_as_by_our_own_server(tmp_path: Path, library: str) -> None:
    async def spoken(place: Place) -> list[list[Any]]:
        async with connected(place) as socket:
            found = []
            for word in ("streamed", "cut", "refused"):
                socket.create(word, stream_id=word, generate=True)
                found.append(same(await socket.answer()))
            socket.create([], generate=False)
            warmed = (await socket.answer())[-1]["response"]
            socket.create("again", previous_response_id=warmed["id"])
            assert texts(await socket.answer()) == "onetwo"
            socket.send({"type": "unknown"})
            assert (await socket.event())["error"]["param"] == "type"
            socket.close()
            assert await socket.closed() == 1000
        for head in (upgrade("origin: https://example.com"), upgrade(path="/v1/realtime")):
            denied = await opened(place, head)
            assert isinstance(denied, Denied)
            found.append([denied.status, denied.code])
        return found

    async with faulty_backend(by_word) as backend:
        settings = settings_for(backend.base_url, max_body_mb=1)
        async with running_gateway(settings) as ours:
            expected = await spoken(ours)
        assert expected[3:] == [[403, "cross_site_request"], [404, "unknown_url"]]
        async with uvicorn_running(tmp_path, settings, "--ws", library) as stock:
            await stock.wait_ready()
            assert await spoken(stock) == expected
            async with connected(stock) as socket:
                socket.create("stalled")
                await socket.event()
            async with asyncio.timeout(10):
                await backend.closed.wait()
            async with connected(stock) as socket:
                stock.process.send_signal(signal.SIGTERM)
                assert await socket.closed() in (1001, 1012)
            await stock.ended()
    assert "code=client_gone" in stock.log
    assert "Traceback" not in stock.log


async def test_wrong_settings_are_one_line_of_the_server(tmp_path: Path) -> None:
    async with uvicorn_running(tmp_path, {"prot": 1}) as stock:
        assert await stock.ended() == 3
    assert "unknown setting 'prot'" in stock.log
    assert "Traceback" not in stock.log


async def test_a_key_that_cannot_be_used_is_one_line_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "state.key").write_text("cut off")
    (tmp_path / "state.key").chmod(0o600)
    async with uvicorn_running(tmp_path, {"log": {"file": None}, "state": {"folder": str(tmp_path)}}) as stock:
        assert await stock.ended() == 3
    assert "64 hexadecimal digits" in stock.log
    assert "Traceback" not in stock.log


async def test_settings_that_only_our_own_server_applies_are_named(tmp_path: Path) -> None:
    assert changed_unused(ServerSettings()) == []
    settings = settings_for("http://127.0.0.1:1", workers=2, reload=False)
    async with uvicorn_running(tmp_path, settings) as stock:
        await stock.wait_ready()
        stock.process.send_signal(signal.SIGTERM)
        await stock.ended()
    assert "have no effect on this server: server.workers, server.reload\n" in stock.log


def scope(path: str, server: tuple[str, int | None] | None = ("127.0.0.1", 80)) -> Scope:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    return {"type": "http", "method": "GET", "path": path, "headers": headers, "server": server, "query_string": b""}


@pytest.mark.parametrize(
    ("server", "local"),
    [
        (("127.0.0.1", 80), True),
        (("::1", 80), True),
        (("/run/socket", None), True),
        (("192.0.2.1", 80), False),
        (None, False),
    ],
)
async def test_without_keys_only_this_machine_is_served(
    tmp_path: Path, server: tuple[str, int | None] | None, local: bool
) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings_for("http://127.0.0.1:1")))
    assert is_local(scope("/healthz", server)) is local
    async with started(Application(tmp_path / "settings.json")) as application:
        status, body = await get(application, scope("/healthz", server))
    assert (status, b"local_only" in body) == ((200, False) if local else (403, True))


async def test_with_keys_others_are_served_who_know_one(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("alice:k\n")
    settings = settings_for("http://127.0.0.1:1", api_keys_file=str(tmp_path / "keys"))
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    async with started(Application(tmp_path / "settings.json")) as application:
        assert (await get(application, scope("/v1/models", ("192.0.2.1", 80))))[0] == 401


@asynccontextmanager
async def started(application: Application) -> AsyncIterator[Application]:
    """The application between its startup and its shutdown."""
    told: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()
    told.put_nowait({"type": "lifespan.startup"})
    running = asyncio.create_task(application({"type": "lifespan"}, told.get, heard.put))
    assert (await heard.get())["type"] == "lifespan.startup.complete"
    yield application
    told.put_nowait({"type": "lifespan.shutdown"})
    assert (await heard.get())["type"] == "lifespan.shutdown.complete"
    await running


async def get(application: Application, scope: Scope) -> tuple[int, bytes]:
    messages: list[Message] = []
    left = [{"type": "http.request"}]

    async def receive() -> Message:
        if left:
            return left.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        messages.append(message)

    await application(scope, receive, send)
    return messages[0]["status"], b"".join(message.get("body", b"") for message in messages[1:])


async def test_a_server_that_takes_nothing_holds_the_response_back() -> None:
    taken = asyncio.Semaphore(0)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        await taken.acquire()
        sent.append(message)

    connection = AsgiConnection()
    writer = AsgiWriter(connection)
    response = ClientResponse(writer, DIALECT, "mine")
    delivering = asyncio.create_task(writer.deliver(send))
    await response.open((), b"one", ENCODER)
    waiting = asyncio.create_task(response.ready())
    await asyncio.sleep(0)
    assert connection.flow.write_paused and not waiting.done()
    taken.release()
    await asyncio.sleep(0.01)
    assert not waiting.done()
    taken.release()
    await waiting
    response.write(b"two")
    taken.release()
    taken.release()
    await response.end(b"three")
    writer.finish()
    await delivering
    assert [message.get("body") for message in sent] == [None, b"one", b"two", b"three"]
    assert [message.get("more_body") for message in sent] == [None, True, True, False]


async def test_a_websocket_whose_client_reads_nothing_is_not_read_further() -> None:
    """Else each message that is answered at once would add to what waits for the client."""
    taken = asyncio.Semaphore(0)
    asked = 0

    async def send(message: Message) -> None:
        await taken.acquire()

    async def receive() -> Message:
        nonlocal asked
        asked += 1
        return {"type": "websocket.receive", "text": "{}"}

    websocket = AsgiWebSocket(send)
    delivering = asyncio.create_task(websocket.deliver())
    await websocket.receive(receive)
    websocket.write([b"one", b"two"])
    waiting = asyncio.create_task(websocket.receive(receive))
    taken.release()
    await asyncio.sleep(0.01)
    assert not waiting.done() and asked == 1
    taken.release()
    await waiting
    websocket.finish()
    await delivering


async def test_a_server_that_reports_a_lost_client_interrupts_the_request() -> None:
    """The server reports it with an exception of `send`, as ASGI allows."""
    lost = asyncio.Event()

    async def app(scope: Scope, receive: object, send: object) -> None:
        writer: AsgiWriter = scope["state"]["response_writer"]
        writer.connection.on_lost = lost.set
        response = ClientResponse(writer, DIALECT, "mine")
        await response.open((), b"one", ENCODER)
        await response.ready()
        response.write(b"two")
        await lost.wait()
        await response.fail(GatewayError("not sent"))

    async def send(message: Message) -> None:
        raise OSError

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(5):
        await through_asgi(app)(scope("/"), receive, send)
    assert lost.is_set()


async def test_a_bug_of_the_server_is_not_hidden() -> None:
    async def app(scope: Scope, receive: object, send: object) -> None:
        await ClientResponse(scope["state"]["response_writer"], DIALECT, "mine").whole(200, b"{}")

    async def send(message: Message) -> None:
        raise RuntimeError("unexpected message")

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(RuntimeError, match="unexpected message"):
        await through_asgi(app)(scope("/"), receive, send)
