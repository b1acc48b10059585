"""Derives the names of all that a gateway keeps on a server. They hold digests only: no tenant, no key of an entry."""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.server.state.store import Space

# The names of everything that a gateway keeps on the server begin with this.
PREFIX: Final = b"dg1:"
LABELS_KEY: Final = b"dg1:epochs"
# The first bytes of a record: they distinguish epochs.
ID: Final = 8
_NAME: Final = 16


class Epoch(msgspec.Struct, frozen=True):
    """An epoch of a tenant. `tenant` is the name of the tenant on the server: a digest."""

    tenant: bytes
    record: bytes

    @property
    def id(self) -> bytes:
        """The part of the record that scripts compare."""
        return self.record[:ID]

    @property
    def label(self) -> bytes:
        """Names the epoch on the server."""
        return b"{%b}:%b" % (self.tenant, self.record[ID : ID + 4].hex().encode())

    @property
    def base(self) -> bytes:
        """The prefix of all names of the epoch."""
        return base(self.label)

    def names(self, space: Space, keys: Iterable[bytes]) -> list[bytes]:
        """Returns the names of entries, in the order of their keys."""
        start = b"%b%b:" % (self.base, space.encode())
        return [start + self._digest(key) for key in keys]

    def lease(self, name: str) -> bytes:
        """Returns the name of a lease."""
        return b"%blease:%b" % (self.base, self._digest(name.encode()))

    def _digest(self, key: bytes) -> bytes:
        return hashlib.blake2b(key, digest_size=_NAME, key=self.record).hexdigest().encode()


def tenant_name(tenant: str) -> bytes:
    """Returns the digest by which the server knows a tenant."""
    return hashlib.blake2b(tenant.encode(), digest_size=8, person=b"dragoman tenant").hexdigest().encode()


def record_name(tenant: str) -> bytes:
    """Returns the name of the tenant's record."""
    return b"dg1:{%b}:epoch" % tenant_name(tenant)


def rate_name(tenant: str) -> bytes:
    """Returns the name of the rate of an API key."""
    return b"dg1:{%b}:rate" % tenant_name(tenant)


def running_name(tenant: str) -> bytes:
    """Returns the name of the running requests of an API key."""
    return b"dg1:{%b}:running" % tenant_name(tenant)


def counted_name(tenant: str, process: bytes) -> bytes:
    """Returns the name of the requests of an API key that its rate contains of one process."""
    return b"dg1:{%b}:counted:%b" % (tenant_name(tenant), process)


def budget_name(tenant: str, budget: str, start: int) -> bytes:
    """Returns the name of what is reserved of a budget of an API key, in the window that begins then."""
    return b"dg1:{%b}:budget:%b:%d" % (tenant_name(tenant), budget.encode(), start)


def is_usage(name: bytes) -> bool:
    """Returns whether this names the usage of an API key: no content, and not deleted with it."""
    return name.endswith((b":rate", b":running")) or b"}:counted:" in name or b"}:budget:" in name


def base(label: bytes) -> bytes:
    """Returns the prefix of all names of an epoch, from its label."""
    return b"%b%b:" % (PREFIX, label)


def index_name(base: bytes) -> bytes:
    """Returns the name of an epoch's index of entries."""
    return base + b"index"


def sizes_name(base: bytes) -> bytes:
    """Returns the name of an epoch's sizes."""
    return base + b"sizes"
