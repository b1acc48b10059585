"""A TCP proxy between a client and a server that can stop working in the ways that networks do."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeAlias, get_args

# `refuse`: no connection is accepted; `reset`: each ends with RST; `blackhole`: nothing comes back; `delay`: each reply
# comes five seconds late; `half`: each reply ends in its middle, the connection stays; `cut`: there it ends as well;
# `flip`: a bit of each reply is another one.
Mode: TypeAlias = Literal["pass", "refuse", "reset", "blackhole", "delay", "half", "cut", "flip"]
FAULTS: Final[tuple[Mode, ...]] = get_args(Mode)[1:]
DELAY_S: Final = 5.0


class FaultyProxy:
    """`mode` holds for open connections, too. `carried` counts the chunks that clients have sent since it was set."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._mode: Mode = "pass"
        self._listener: asyncio.Server | None = None
        self._tasks = set[asyncio.Task[None]]()
        self._writers = set[asyncio.StreamWriter]()
        self._passes = asyncio.Event()
        self._passes.set()
        self._on_held: Callable[[], None] | None = None
        self.port = 0
        self.carried = 0

    async def set(self, mode: Mode) -> None:
        """Behave like this from now on."""
        self._mode, self.carried = mode, 0
        if mode in ("refuse", "reset"):
            for writer in self._writers:
                self._reset(writer)
        if mode == "refuse":
            await self.close()
        elif self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    def hold(self, on_held: Callable[[], None]) -> None:
        """Keep back what clients send until `let_go`. `on_held` is called before the first of it is kept back."""
        self._passes.clear()
        self._on_held = on_held

    def let_go(self) -> None:
        """Carry on what was held."""
        self._passes.set()

    async def close(self) -> None:
        """Stop listening and end all connections."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if self._mode == "reset":
                self._reset(writer)
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await _first(self._requests(reader, back), self._replies(there, writer))
            finally:
                back.close()
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)
            self._writers.discard(writer)

    async def _requests(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.carried += 1
            if not self._passes.is_set() and self._on_held is not None:
                self._on_held()
                self._on_held = None
            await self._passes.wait()
            back.write(data)
            await back.drain()

    async def _replies(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await there.read(65536):
            match self._mode:
                case "blackhole":
                    continue
                case "delay":
                    await asyncio.sleep(DELAY_S)
                case "half" | "cut":
                    data = data[: len(data) // 2]
                case "flip":
                    data = data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]
                case _:
                    pass
            writer.write(data)
            await writer.drain()
            if self._mode == "cut":
                return

    def _reset(self, writer: asyncio.StreamWriter) -> None:
        found: socket.socket = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def _first(*runs: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.ensure_future(run) for run in runs]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def faulty_proxy(target: int) -> AsyncIterator[FaultyProxy]:
    """A proxy to this port of this machine, which works at first."""
    proxy = FaultyProxy(target)
    await proxy.set("pass")
    try:
        yield proxy
    finally:
        await proxy.close()
