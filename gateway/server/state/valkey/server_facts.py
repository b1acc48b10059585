"""Reads what a server says about itself, and what of it an operator should change."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

OLDEST: Final = (7, 0)


class ServerFacts(msgspec.Struct, frozen=True):
    """The protocol version of Redis that the server speaks, and its limit of memory. Empty: it does not say.

    `max_bytes` 0: no limit."""

    version: tuple[int, ...] = ()
    max_bytes: int = 0
    eviction: str = ""

    def faults(self) -> Iterator[str]:
        """Returns a sentence for each fact that breaks a promise of the store."""
        if self.version and self.version < OLDEST:
            yield f"it is Redis {'.'.join(map(str, self.version))}; the gateway's scripts need Redis 7.0 or Valkey"
        if self.max_bytes and self.eviction not in ("", "noeviction"):
            yield (
                f"its maxmemory-policy is {self.eviction}, so that it may remove leases, limits and epochs when it is"
                " full; set it to noeviction, or use a server of its own"
            )


def read_facts(info: bytes) -> ServerFacts:
    """Returns the facts in the reply to INFO; a field that it lacks stays unknown."""
    fields = dict(re.findall(rb"^(\w+):(.*?)\r?$", info, re.MULTILINE))
    version = re.findall(r"\d{1,6}", fields.get(b"redis_version", b"").decode("ascii", "replace"))
    limit = fields.get(b"maxmemory", b"")
    return ServerFacts(
        tuple(map(int, version[:3])),
        int(limit[:18]) if limit.isdigit() else 0,
        fields.get(b"maxmemory_policy", b"").decode("ascii", "replace"),
    )
