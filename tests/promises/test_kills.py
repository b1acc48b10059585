"""A killed backend is reported as an error, and served again after its restart."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx

from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.promises.wire_gateway import finishes, frames, text_of, wire_settings
from tests.promises.wires import WIRES

# Says what it is told to, and then nothing more.
BACKEND: Final = """
import socket, sys, time
said = bytes.fromhex(sys.argv[2])
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    print(listener.getsockname()[1], flush=True)
    kept = []
    while True:
        kept.append(listener.accept()[0])
        kept[-1].recv(65536)
        kept[-1].sendall(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n\\r\\n" + said)
        print("asked", flush=True)
        if said.endswith(b"[DONE]\\n\\n"):
            kept.pop().close()
"""


class Backend:
    """A process that was started, and says when it has answered."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port

    async def asked(self) -> None:
        assert self.process.stdout is not None
        assert await self.process.stdout.readline() == b"asked\n"

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


@asynccontextmanager
async def backend(said: bytes, port: int = 0) -> AsyncIterator[Backend]:
    command = (sys.executable, "-S", "-c", BACKEND, str(port), said.hex())
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    started = Backend(process, int(await process.stdout.readline()))
    try:
        yield started
    finally:
        await started.kill()
        await process.communicate()


async def cut_off(gateway: RunningGateway, killed: Backend) -> list[str]:
    """What a stream says when its backend is killed in its midst."""
    request = {**hello(), "stream": True}
    async with gateway.client.stream("POST", "/v1/chat/completions", json=request) as response:
        text = ""
        async for piece in response.aiter_text():
            if not text:
                await killed.kill()
            text += piece
    return frames(text)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def test_kill_9_of_the_backend() -> None:
    spoken = WIRES["native"].spoken
    async with backend(spoken.begin) as first:
        settings = wire_settings(WIRES["native"], {"m": f"http://127.0.0.1:{first.port}"})
        async with running_gateway(settings) as gateway:
            said = await cut_off(gateway, first)
            assert text_of(said) == "one" and finishes(said) == []
            assert json.loads(said[-1])["error"]["code"] == "upstream_stream_truncated"
            assert code(await gateway.chat()) == (502, "upstream_connection_error")
            async with backend(spoken.begin, first.port) as silent:
                asking = asyncio.create_task(gateway.chat())
                await silent.asked()
                await silent.kill()
                assert code(await asking) == (502, "upstream_stream_truncated")
            async with backend(spoken.begin + spoken.end, first.port):
                assert (await gateway.chat()).status_code == 200
