"""A kind of demo backend in, a running one on a loopback socket out."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from aiohttp import web

from gateway.demo.agent import agent_app
from gateway.demo.chat import chat_app
from gateway.demo.recorder import RecordedRequest, Recorder
from gateway.demo.text import text_app

Kind = Literal["agent", "chat", "text"]

KINDS: Final[dict[str, tuple[Callable[[Recorder], web.Application], str]]] = {
    "agent": (agent_app, ""),
    "chat": (chat_app, "/v1"),
    "text": (text_app, ""),
}


class DemoBackend:
    """A running demo backend. `base_url` is what a backend entry of settings.json would hold."""

    def __init__(self, kind: str, base_url: str, recorder: Recorder) -> None:
        self.kind = kind
        self.base_url = base_url
        self._recorder = recorder

    @property
    def requests(self) -> Sequence[RecordedRequest]:
        """What was asked, oldest first."""
        return tuple(self._recorder.requests)

    @property
    def aborted(self) -> int:
        """How many answers the client left before their end."""
        return self._recorder.aborted

    @property
    def active(self) -> int:
        """How many answers are under way."""
        return self._recorder.active

    async def idle(self) -> None:
        """Wait until no answer is under way."""
        await self._recorder.idle()


@asynccontextmanager
async def serve_demo(kind: str, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[DemoBackend]:
    """Serve one kind of demo backend (`agent`, `chat`, `text`) until the block ends. Raises ValueError for others."""
    if kind not in KINDS:
        raise ValueError(f"there is no demo backend {kind!r}; there are {', '.join(KINDS)}")
    build, prefix = KINDS[kind]
    recorder = Recorder()
    # Handlers are cancelled when their client leaves: that is how an early close is seen while nothing is written.
    runner = web.AppRunner(build(recorder), handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound_host, bound_port = runner.addresses[0][:2]
        yield DemoBackend(kind, f"http://{bound_host}:{bound_port}{prefix}", recorder)
    finally:
        recorder.closing = True
        await runner.cleanup()
