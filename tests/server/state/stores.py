"""The stores that the contract holds for. Each opens two handles, as two workers of one gateway have them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from bench.load_test.store_servers import PROGRAMS, server
from gateway.server.state.encryption import EncryptedSeal
from gateway.server.state.memory import MemoryStore
from gateway.server.state.sealed_store import SealedStore
from gateway.server.state.sqlite import SqliteStore
from gateway.server.state.store import EvictionReason, Space, StateStore
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.store import ValkeyStore
from tests.server.state.test_process_identity import OURS, PARENT

MAX_BYTES: Final = 2**20
Pair: TypeAlias = tuple[StateStore, StateStore]
Evictions: TypeAlias = list[tuple[Space, EvictionReason]]


@asynccontextmanager
async def memory(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
    """One worker: both handles are the same."""
    store = MemoryStore(MAX_BYTES, lambda *eviction: evictions.append(eviction))
    yield store, store
    await store.aclose()


def on_server(kind: str) -> Callable[[Path, Evictions], AbstractAsyncContextManager[Pair]]:
    """Two clients of a real server of this kind."""

    @asynccontextmanager
    async def opened(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
        async with server(kind, folder) as running:
            address = read_address(running.url)
            mine, other = (ValkeyStore(address, lambda *eviction: evictions.append(eviction)) for _ in range(2))
            async with aclosing(mine), aclosing(other):
                yield mine, other

    return opened


@asynccontextmanager
async def sqlite(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
    """Two workers: this process and its parent."""

    def opened(holder: str) -> SqliteStore:
        return SqliteStore(folder / "state.db", holder, MAX_BYTES, lambda *eviction: evictions.append(eviction))

    one, two = opened(OURS), opened(PARENT)
    yield one, two
    await one.aclose()
    await two.aclose()


@asynccontextmanager
async def encrypted(folder: Path, evictions: Evictions) -> AsyncIterator[Pair]:
    """Two clients of a server, as the settings open them; each has sealed what it keeps by a key of its own."""
    async with on_server("valkey")(folder, evictions) as pair:
        first, second = "1" * 32, "2" * 32
        keys = ([first, second], [second, first])
        mine, other = (
            SealedStore(store, EncryptedSeal(seal), _unreadable) for store, seal in zip(pair, keys, strict=True)
        )
        yield mine, other


def _unreadable(space: Space, reason: str) -> None:
    raise AssertionError(f"a value of {space} cannot be read: {reason}")


STORES: Final[dict[str, Callable[[Path, Evictions], AbstractAsyncContextManager[Pair]]]] = {
    "memory": memory,
    "sqlite": sqlite,
    "encrypted": encrypted,
    **{kind: on_server(kind) for kind in PROGRAMS},
}
# The stores that remove entries by themselves where room is needed.
BOUNDED: Final = ("memory", "sqlite")
