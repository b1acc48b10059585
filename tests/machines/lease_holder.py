"""Holds a lease as one gateway would: `python -m tests.machines.lease_holder URL TTL`.

It prints `held`, commits when it reads a line, and prints whether that was accepted.
"""

import asyncio
import sys
from contextlib import aclosing

from gateway.server.state.open_store import open_store
from gateway.server.state.store import Put
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings


async def main(url: str, ttl_s: float) -> None:
    """Acquire, wait, commit."""
    async with aclosing(open_store(StateSettings(store=url), Metrics())) as store:
        lease = await store.acquire("a", "work", ttl_s)
        assert lease is not None
        _say("held")
        await asyncio.to_thread(sys.stdin.readline)
        committed = await store.commit(lease, [Put("sum", b"k", b"late", 600)])
        _say("committed" if committed else "refused")


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
