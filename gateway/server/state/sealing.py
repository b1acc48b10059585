"""Turns a value into the bytes that a shared store keeps, and back: compressed, and bound to its name.

A sealed value is `form | flags | key id | body`. Each form has its own body: `ChecksumSeal` below adds a checksum,
`EncryptedSeal` (encryption.py) encrypts. Both detect a damaged value and one that belongs to another name. A gateway of
another version may know other forms, so a value that cannot be read is a miss and stays where it is.
"""

import hashlib
import hmac
import zlib
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

# Below this, zlib saves less than its call costs.
COMPRESSED_FROM: Final = 1024
# No value that a gateway writes is larger, so that a forged one cannot fill the memory.
LARGEST: Final = 64 * 2**20
HEADER: Final = 6
NO_KEY: Final = bytes(4)
_ZLIB: Final = 1
_DIGEST: Final = 16

UnreadableReason: TypeAlias = Literal["form", "key", "seal"]


class Unreadable(Exception):
    """A stored value that this gateway cannot read: of an unknown form, under an unknown key, or damaged."""

    def __init__(self, reason: UnreadableReason) -> None:
        super().__init__(reason)
        self.reason: Final = reason


class Scope(NamedTuple):
    """Whose values these are: the tenant, and the salt of its present epoch (32 bytes; only encryption uses it)."""

    tenant: str
    salt: bytes


class Seal(Protocol):
    """Seals and opens the values of a store. `name` is the full name of the entry in the store."""

    def seal(self, scope: Scope, name: bytes, data: bytes) -> bytes:
        """Returns the bytes to store."""

    def open(self, scope: Scope, name: bytes, sealed: bytes) -> bytes:
        """Returns the data that was sealed under this name. Raises Unreadable."""


class ChecksumSeal:
    """Detects damage, and keeps no secret: whoever reads the store reads the values. See `Seal`."""

    FORM: Final = 1

    def seal(self, scope: Scope, name: bytes, data: bytes) -> bytes:
        """See `Seal`."""
        flags, packed = pack(data)
        header = bytes((self.FORM, flags)) + NO_KEY
        return header + _checksum(scope, bound(name, header), packed) + packed

    def open(self, scope: Scope, name: bytes, sealed: bytes) -> bytes:
        """See `Seal`."""
        if not sealed or sealed[0] != self.FORM:
            raise Unreadable("form")
        header, found, packed = sealed[:HEADER], sealed[HEADER : HEADER + _DIGEST], sealed[HEADER + _DIGEST :]
        if not hmac.compare_digest(found, _checksum(scope, bound(name, header), packed)):
            raise Unreadable("seal")
        return unpack(header[1], packed)


def pack(data: bytes) -> tuple[int, bytes]:
    """Returns the flags of a header, and the data, compressed where that makes it smaller."""
    if len(data) >= COMPRESSED_FROM:
        packed = zlib.compress(data, 1)
        if len(packed) < len(data):
            return _ZLIB, packed
    return 0, data


def unpack(flags: int, packed: bytes) -> bytes:
    """Returns the data again. Raises Unreadable for unknown flags, and for what `pack` did not write."""
    if flags == 0:
        return packed
    if flags != _ZLIB:
        raise Unreadable("form")
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, LARGEST)
    except zlib.error:
        raise Unreadable("seal") from None
    if not unpacker.eof:
        raise Unreadable("seal")
    return data


def bound(name: bytes, header: bytes) -> bytes:
    """Returns what a seal covers besides the data: no other name and header give the same bytes."""
    return len(name).to_bytes(4, "big") + name + header


def _checksum(scope: Scope, covered: bytes, packed: bytes) -> bytes:
    tenant = scope.tenant.encode()
    digest = hashlib.blake2b(len(tenant).to_bytes(4, "big") + tenant + covered, digest_size=_DIGEST)
    digest.update(packed)
    return digest.digest()
