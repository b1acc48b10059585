"""Starts each kind of demo backend in this process on its first use and returns its address."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final

from gateway.core.conversation import Json, JsonObject

if TYPE_CHECKING:
    from gateway.demo import DemoBackend

# The path at which the gateway shows the requests they received.
DEMO_REQUESTS: Final = "/__demo/requests"


class DemoBackends:
    """Use with `async with`; all demo backends stop at the end of the block."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._running: dict[str, DemoBackend] = {}

    async def __aenter__(self) -> "DemoBackends":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def url(self, kind: str) -> str:
        """Returns the address of this kind."""
        if kind not in self._running:
            from gateway.demo import serve_demo

            self._running[kind] = await self._stack.enter_async_context(serve_demo(kind))
        return self._running[kind].base_url

    def show(self) -> JsonObject:
        """Returns the requests that each kind received, as JSON; empty where none is used."""
        shown: dict[str, Json] = {kind: demo.show() for kind, demo in self._running.items()}
        return shown
