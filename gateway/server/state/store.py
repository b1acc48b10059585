"""Defines what a store of state does for the features that remember something: entries of a tenant that expire, leases,
and commits that only the holder of a lease can make.

A tenant is the name of an API key, `-` where there are no keys. Every method that reads or writes content takes it, so
that no entry exists without one. An entry is a cache of something: losing it may cost tokens or time, never a wrong
answer. Keys are digests or random ids of at most 64 bytes, never text of a conversation.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeAlias, get_args

import msgspec

# Index of summaries, opaque state of providers, responses, summaries, texts of pictures and documents.
Space: TypeAlias = Literal["idx", "ops", "rsp", "sum", "txt"]
SPACES: Final[tuple[Space, ...]] = get_args(Space)
# The version of an entry that does not exist, for `Put.if_version`.
ABSENT: Final = 0
EPOCH_BYTES: Final = 32
# Before the time in the record of an epoch that `forget` has begun; 20 random bytes stand before it.
_FORGOTTEN: Final = b"\0fgt"
_RANDOM: Final = 20
# Stands for every tenant where an epoch begins.
EVERYONE: Final = "*"

# `slow`: no reply in time; `down`: no connection; `full`: no room; `invalid`: a reply that cannot be right.
Failure: TypeAlias = Literal["slow", "down", "full", "invalid"]
# `expired`: its time to live has passed; `full`: its bytes were needed for newer entries.
EvictionReason: TypeAlias = Literal["expired", "full"]
# Called by a store for each entry that it removes by itself.
OnEvict: TypeAlias = Callable[[Space, EvictionReason], None]


def first_record() -> bytes:
    """Returns the record of a tenant's first epoch: random bytes."""
    return secrets.token_bytes(EPOCH_BYTES)


def next_record(when: float) -> bytes:
    """Returns the record of an epoch that begins at this time, in seconds since 1970, because its tenant is
    forgotten."""
    return secrets.token_bytes(_RANDOM) + _FORGOTTEN + round(when * 1_000_000).to_bytes(8, "big")


def forgotten_at(record: bytes) -> float:
    """Returns when the tenant was forgotten, in seconds since 1970, from the record of its epoch; 0.0: never."""
    head, found = record[_RANDOM : _RANDOM + len(_FORGOTTEN)], record[_RANDOM + len(_FORGOTTEN) :]
    return int.from_bytes(found, "big") / 1_000_000 if head == _FORGOTTEN and len(record) == EPOCH_BYTES else 0.0


class StoreUnavailable(Exception):
    """A store could not do what it was asked for. `detail` holds no content of an entry."""

    def __init__(self, reason: Failure, detail: str) -> None:
        super().__init__(f"the store is {reason}: {detail}" if detail else f"the store is {reason}")
        self.reason: Failure = reason


class Entry(msgspec.Struct, frozen=True):
    """A stored value. `version` is above 0 and grows with every put of its key, also after a deletion."""

    data: bytes
    version: int


class Put(msgspec.Struct, frozen=True):
    """A value to store for `ttl_s` seconds (above 0). `if_version`: only if the entry has this version (`ABSENT`: only
    if there is none); None: always."""

    space: Space
    key: bytes
    data: bytes
    ttl_s: float
    if_version: int | None = None


class Lease(msgspec.Struct, frozen=True):
    """The right to do the work `name` of a tenant, for `ttl_s` seconds after it was acquired or renewed. A later lease
    has a higher token."""

    tenant: str
    name: str
    token: int
    ttl_s: float


class Usage(msgspec.Struct, frozen=True):
    """The use of a space by a tenant. `tenant` is a digest where the store knows no names."""

    tenant: str
    space: Space
    entries: int
    bytes: int


class StoreStats(msgspec.Struct, frozen=True):
    """The contents of a store by their numbers and sizes, and its limit; None: unknown."""

    usage: tuple[Usage, ...]
    max_bytes: int | None


class StateStore(Protocol):
    """A store. Every method raises StoreUnavailable and nothing else; a method that raises may have had its effect.

    `name` is for log lines: what the settings say, without a password. `at_once` is how many operations it works on at
    the same time."""

    name: str
    at_once: int

    async def get(self, tenant: str, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """Returns the entries in the order of the keys; None for each that is absent or expired."""

    async def put(self, tenant: str, *puts: Put) -> bool:
        """Stores all of the values, or none. Returns False when an `if_version` does not match."""

    async def extend(self, tenant: str, space: Space, keys: Sequence[bytes], ttl_s: float) -> None:
        """Lets the entries that exist live for `ttl_s` seconds from now; their versions stay."""

    async def delete(self, tenant: str, space: Space, keys: Sequence[bytes]) -> None:
        """Deletes the entries that exist."""

    async def epoch(self, tenant: str) -> bytes:
        """Returns the record of the tenant's epoch: `EPOCH_BYTES` bytes, most of them random, that all users of the
        store see until `forget` replaces them. Digests and data keys that are derived from them end with the epoch.
        `forgotten_at` reads its time. May be 5 s old."""

    async def forgotten(self, tenants: Sequence[str]) -> list[float]:
        """Returns when each of the tenants was forgotten, in seconds since 1970, by one look at the store; 0.0:
        never."""

    async def forget(self, tenant: str) -> None:
        """Begins a new epoch: within 5 s nothing of the tenant's entries and leases can be read or used anywhere."""

    async def purge(self) -> None:
        """Deletes the entries, leases and epochs of all tenants, and begins one of `EVERYONE`."""

    async def acquire(self, tenant: str, name: str, ttl_s: float) -> Lease | None:
        """Returns the lease, or None while it is held, by the caller too."""

    async def renew(self, lease: Lease) -> bool:
        """Lets the lease live for `ttl_s` seconds from now. Returns False when it has ended."""

    async def release(self, lease: Lease) -> None:
        """Ends the lease, if it has not ended already."""

    async def commit(self, lease: Lease, puts: Sequence[Put]) -> bool:
        """Stores all of the values for the lease's tenant, or none. Returns False when the lease has ended or was
        acquired again meanwhile, or when an `if_version` does not match."""

    async def stats(self) -> StoreStats:
        """Returns the numbers and sizes of the stored entries. May take long with a large store."""

    async def ping(self) -> None:
        """Connects where there is no connection, and waits for one reply."""

    async def aclose(self) -> None:
        """Closes the store. What memory holds is gone."""
