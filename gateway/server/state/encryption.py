"""Encrypts the values of a shared store with AES-256-GCM, by a key of their tenant.

The key of a tenant is derived (HKDF, RFC 5869) from a key of the operator and the salt of the tenant's epoch: without
the salt nothing of an earlier epoch can be read any more, whoever has the operator's key.
"""

import functools
import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.core.errors import SettingsError
from gateway.server.state.sealed_store import HEADER, SHORTEST_KEY, Scope, Unreadable, bound, pack, unpack

_NONCE: Final = 12
_KEY_ID: Final = 4
# Keys of tenants that are kept ready; deriving one takes some 10 us.
_READY: Final = 1024


class EncryptedSeal:
    """Seals with the first of the operator's keys, and opens with each of them. See `Seal`.

    A nonce is random (96 bits): by NIST SP 800-38D a tenant may have 2**32 values an epoch."""

    FORM: Final = 2

    def __init__(self, keys: Sequence[str]) -> None:
        """Raises SettingsError without a key, and for one that is too short to be random."""
        if not keys or any(len(key) < SHORTEST_KEY for key in keys):
            raise SettingsError(
                f"a key of the state has at least {SHORTEST_KEY} characters, as `openssl rand -hex 32` prints them"
            )
        self._keys = {_derive(key.encode(), b"", b"key id", _KEY_ID): key.encode() for key in keys}
        self._first = next(iter(self._keys))
        self._cipher = functools.lru_cache(_READY)(self._tenant_cipher)

    def seal(self, scope: Scope, name: bytes, data: bytes) -> bytes:
        """See `Seal`."""
        flags, packed = pack(data)
        header = bytes((self.FORM, flags)) + self._first
        nonce = os.urandom(_NONCE)
        return header + nonce + self._cipher(self._first, scope).encrypt(nonce, packed, bound(name, header))

    def open(self, scope: Scope, name: bytes, sealed: bytes) -> bytes:
        """See `Seal`."""
        header, nonce = sealed[:HEADER], sealed[HEADER : HEADER + _NONCE]
        if not header or header[0] != self.FORM:
            raise Unreadable("form")
        if header[2:] not in self._keys:
            raise Unreadable("key")
        cipher = self._cipher(header[2:], scope)
        try:
            packed = cipher.decrypt(nonce, sealed[HEADER + _NONCE :], bound(name, header))
        except (InvalidTag, ValueError):  # ValueError: cut off in the nonce
            raise Unreadable("seal") from None
        return unpack(header[1], packed)

    def _tenant_cipher(self, key_id: bytes, scope: Scope) -> AESGCM:
        return AESGCM(_derive(self._keys[key_id], scope.salt, b"state of " + scope.tenant.encode(), 32))


def _derive(key: bytes, salt: bytes, purpose: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=b"dragoman " + purpose).derive(key)
