"""Seals summaries that clients keep, and opens them again: AES-256-GCM by a key of the tenant
(`gateway.server.state.encryption`).

The seal binds the form and the key's id (they are authenticated), the name of the client's API key (the cipher's key is
derived from it), and the time and the digest of what is covered, which are inside. A worker or a machine with the same
key opens it without a store.
"""

from typing import Final

from gateway.memory.summaries.sealed_summary import (
    SealedSummary,
    SealUnreadable,
    decode_summary,
    sealed_bytes,
    sealed_text,
)
from gateway.server.state.encryption import EncryptedSeal
from gateway.server.state.sealed_store import Scope, Unreadable
from gateway.server.state.state_folder import StateKeys

# What this is the seal of: nothing else that the same key encrypts has the name.
_NAME: Final = b"compaction"
# The salt of a store's epoch is not used: the epoch of a sealed summary is its time.
_SALT: Final = bytes(32)


class SummarySeal:
    """The seal of one gateway."""

    def __init__(self, keys: StateKeys) -> None:
        self._keys = keys
        self._seal: EncryptedSeal | None = None

    def seal(self, tenant: str, summary: SealedSummary) -> str | None:
        """Returns the text that a client keeps; None where it would be too long."""
        sealed = self._cipher().seal(Scope(tenant, _SALT), _NAME, summary.encode())
        self._keys.warn()
        return sealed_text(sealed)

    def open(self, tenant: str, text: str) -> SealedSummary:
        """Returns the summary of a text with the mark. Raises SealUnreadable, for whatever reason: forged, cut, of
        another API key, under an unknown key, or of an epoch that has ended."""
        sealed = sealed_bytes(text)
        try:
            summary = decode_summary(self._cipher().open(Scope(tenant, _SALT), _NAME, sealed))
        except Unreadable as error:
            raise SealUnreadable(str(error)) from error
        began = self._keys.epoch(tenant)
        if began is None or summary.created <= began:
            raise SealUnreadable("of an epoch that has ended")
        return summary

    def _cipher(self) -> EncryptedSeal:
        if self._seal is None:
            self._seal = EncryptedSeal(self._keys.sealing())
        return self._seal
