"""Counts the calls of a gateway while it serves small requests over sockets: its backend and its client are threads of
their own, whose calls do not count."""

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Final

import pytest
import uvloop

from bench import payload
from gateway.core.conversation import Json
from gateway.server.log.logger import LOGGER
from gateway.testing.gateway import running_gateway

_REQUESTS: Final = 60
_ROUNDS: Final = 3
_HEAD: Final = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
_WHOLE: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
_STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%b"
_LAST: Final = b"0\r\n\r\n"


def served_calls(*, stream: bool) -> float:
    """Returns the calls of the event loop's thread for one request, which its backend answers in one piece."""
    with pytest.MonkeyPatch.context() as patch, _backend(_answer(stream)) as port:
        # What a line costs depends on the handlers that other tests have left.
        patch.setattr(LOGGER, "disabled", True)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_served(port, stream))


def _answer(stream: bool) -> bytes:
    if not stream:
        body = payload.completion()
        return _WHOLE % (len(body), body)
    events = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in payload.chunks(8))
    return _STREAM % events + _LAST


async def _served(backend: int, stream: bool) -> float:
    settings: dict[str, Json] = {
        "backends": {"b": {"adapter": "openai_chat", "base_url": f"http://127.0.0.1:{backend}/v1"}},
        "models": {"*": {"backend": "b"}},
    }
    async with running_gateway(settings) as gateway:
        counts = await asyncio.to_thread(_counts, asyncio.get_running_loop(), gateway.port, stream)
    # The timers of the loop run beside the requests.
    return min(counts)


def _counts(loop: asyncio.AbstractEventLoop, port: int, stream: bool) -> list[float]:
    body = payload.request("m", stream=stream)
    request = _HEAD + b"content-length: %d\r\n\r\n%b" % (len(body), body)
    count = 0

    def seen(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    def round_trips(number: int) -> int:
        nonlocal count
        count = 0
        _in_loop(loop, lambda: sys.setprofile(seen))
        for _ in range(number):
            connection.sendall(request)
            _read(connection, _LAST if stream else b"}")
        _in_loop(loop, lambda: sys.setprofile(None))
        return count

    with closing(socket.create_connection(("127.0.0.1", port))) as connection:
        round_trips(_REQUESTS)
        return [(round_trips(2 * _REQUESTS) - round_trips(_REQUESTS)) / _REQUESTS for _ in range(_ROUNDS)]


def _in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    done = threading.Event()

    def run() -> None:
        work()
        done.set()

    loop.call_soon_threadsafe(run)
    done.wait()


def _read(connection: socket.socket, end: bytes) -> bytes:
    """Returns what a peer sends up to these bytes; nothing where it has closed the connection."""
    data = b""
    while not data.endswith(end):
        piece = connection.recv(1 << 16)
        if not piece:
            return b""
        data += piece
    return data


@contextmanager
def _backend(answer: bytes) -> Iterator[int]:
    """Answers every request of the first connection with these bytes; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while _read(connection, b"}"):
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
