"""Starts each demo backend in this process on its first use and returns its URL."""

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

    async def url(self, address: str) -> str:
        """Returns the URL of the demo backend at this address: its kind, and its defect behind `?defect=`."""
        if address not in self._running:
            from gateway.demo import serve_demo

            kind, defect = read_demo_address(address)
            self._running[address] = await self._stack.enter_async_context(serve_demo(kind, defect=defect))
        return self._running[address].base_url

    def show(self) -> JsonObject:
        """Returns the requests that each demo backend received, by address, as JSON; empty where none is used."""
        shown: dict[str, Json] = {address: demo.show() for address, demo in self._running.items()}
        return shown


def read_demo_address(address: str) -> tuple[str, str | None]:
    """Returns the kind and the defect, or None, of an address such as `chat?defect=no_done`."""
    kind, separator, defect = address.partition("?defect=")
    return kind, defect if separator else None
