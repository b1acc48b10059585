"""The stores of limits that one contract holds for. Each opens two handles, as two processes have them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from bench.load_test.store_servers import PROGRAMS, server
from gateway.server.state.limit_store import LimitStore
from gateway.server.state.sqlite import SqliteLimits
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.limits import ValkeyLimits
from tests.server.state.test_process_identity import OURS, PARENT

LimitPair: TypeAlias = tuple[LimitStore, LimitStore]


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[LimitPair]:
    """Two that live: this process and its parent."""
    one, two = (SqliteLimits(folder / "limits.db", holder) for holder in (OURS, PARENT))
    yield one, two
    await one.aclose()
    await two.aclose()


def on_server(kind: str) -> Callable[[Path], AbstractAsyncContextManager[LimitPair]]:
    """Two clients of a real server of this kind."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[LimitPair]:
        async with server(kind, folder) as running:
            address = read_address(running.url)
            async with aclosing(ValkeyLimits(address)) as mine, aclosing(ValkeyLimits(address)) as other:
                yield mine, other

    return opened


LIMIT_STORES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[LimitPair]]]] = {
    "sqlite": sqlite,
    **{kind: on_server(kind) for kind in PROGRAMS},
}
