"""Keeps what was read of a picture or a PDF, so that the same bytes of the same client key stand as the same text in
every later request.

An entry is found by a digest of the bytes under the epoch of the key: it ends with `dragoman state forget`, and the
store learns nothing of what was read but its length.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from gateway.core.data_url import DataUrl
from gateway.server.state.store import ABSENT, Put, Space, StoreUnavailable
from gateway.server.state.stores import RequestStore

SPACE: Final[Space] = "txt"
# How long a conversation may pause before its texts are forgotten; each use begins this time anew.
KEPT_S: Final = 7 * 24 * 3600.0
FORM: Final = 1


class ReadText(msgspec.Struct, frozen=True, array_like=True):
    """What was read of a part: its text and what that took in tokens or pages, or why it has none (`problem`). `lost`
    pages could not be read, and `is_cut`: a description has lost its end."""

    text: str = ""
    problem: str = ""
    tokens: int = 0
    pages: int = 0
    lost: int = 0
    is_cut: bool = False


def digest(data: DataUrl, reader: str, epoch: bytes) -> bytes:
    """Returns the digest of a part as this reader reads it: the name of a model, or of what reads PDFs."""
    hashed = hashlib.blake2b(b"%d %s %s\0" % (FORM, reader.encode(), data.media_type.encode()), key=epoch)
    hashed.update(data.data.encode())
    return hashed.digest()[:32]


async def known_texts(store: RequestStore, keys: Sequence[bytes]) -> dict[bytes, ReadText]:
    """Returns the texts that are known, by their digests. They live on from now."""
    found: dict[bytes, ReadText] = {}
    for key, entry in zip(keys, await store.get(SPACE, keys), strict=True):
        if entry is not None and (read := _decoded(entry.data)) is not None:
            found[key] = read
    if found:
        # Where the store fails, they live as long as they did.
        with suppress(StoreUnavailable):
            await store.store.extend(store.tenant, SPACE, [*found], KEPT_S, within_s=store.deadline_s)
    return found


async def keep(store: RequestStore, key: bytes, read: ReadText) -> ReadText:
    """Stores a text, unless another worker was faster. Returns the one that stands, which every later request gets;
    this one where the store fails: the part is read anew then."""
    put = Put(SPACE, key, msgspec.msgpack.encode(read), KEPT_S, ABSENT)
    try:
        if await store.store.put(store.tenant, put):
            return read
        (entry,) = await store.store.get(store.tenant, SPACE, [key])
    except StoreUnavailable:
        return read
    return (entry and _decoded(entry.data)) or read


def _decoded(data: bytes) -> ReadText | None:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


_DECODER: Final = msgspec.msgpack.Decoder(ReadText)
