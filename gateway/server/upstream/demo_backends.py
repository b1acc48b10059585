"""Starts each demo backend in this process on its first use and returns its URL."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.core.conversation import Json, JsonObject

if TYPE_CHECKING:
    from gateway.demo.serve import DemoBackend

# The path at which the gateway shows the requests they received.
DEMO_REQUESTS: Final = "/__demo/requests"
_DEFECT: Final = "?defect="
_NEEDS_KEY: Final = "?key=required"


class DemoAddress(msgspec.Struct, frozen=True):
    """A read address: the kind of demo backend, its defect, and whether it refuses requests without its key."""

    kind: str
    defect: str | None = None
    needs_key: bool = False


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
        """Returns the URL of the demo backend at this address."""
        if address not in self._running:
            from gateway.demo.serve import serve_demo

            demo = read_demo_address(address)
            serving = serve_demo(demo.kind, defect=demo.defect, needs_key=demo.needs_key)
            self._running[address] = await self._stack.enter_async_context(serving)
        return self._running[address].base_url

    def show(self) -> JsonObject:
        """Returns the requests that each demo backend received, by address, as JSON; empty where none is used."""
        shown: dict[str, Json] = {address: demo.as_json() for address, demo in self._running.items()}
        return shown


def read_demo_address(address: str) -> DemoAddress:
    """Returns the name in an address: `chat`, `chat?defect=no_done` or `chat?key=required`."""
    if address.endswith(_NEEDS_KEY):
        return DemoAddress(address.removesuffix(_NEEDS_KEY), needs_key=True)
    kind, separator, defect = address.partition(_DEFECT)
    return DemoAddress(kind, defect if separator else None)
