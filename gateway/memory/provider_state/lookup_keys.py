"""Finds the answer that a turn of the assistant was, by what clients send back of it unchanged.

Ids alone do not say it, because `call_1` repeats, and neither does the whole history before it, because clients trim
and rewrite that. A turn therefore has two lookup keys: its calls with their ids, and its text and calls behind the turn
before it, for clients that change ids or have none.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gateway.core.conversation import File, Image, Json, ToolCall, Turn
from gateway.framing.json_text import NotJson, decode_json

SIZE: Final = 16
# The longest key that BLAKE2b takes.
_KEY: Final = 64
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class LookupKeys(msgspec.Struct, frozen=True):
    """`calls`: None without calls, or where the dialect derived their ids; `content`: None for an empty turn."""

    calls: bytes | None = None
    content: bytes | None = None

    @property
    def known(self) -> tuple[bytes, ...]:
        """The keys that there are, the more certain one first."""
        return tuple([key for key in (self.calls, self.content) if key is not None])


def lookup_keys(turn: Turn, before: Turn | None, secret: bytes) -> LookupKeys:
    """Returns the lookup keys of a turn behind another one. `secret` keeps a reader of them from testing guesses."""
    calls = turn.calls
    written = [(call.name, _canonical(call.arguments)) for call in calls]
    by_calls = None
    if calls and not any(call.id_derived for call in calls):
        by_calls = _digest("calls", _flat((call.id, *pair) for call, pair in zip(calls, written, strict=True)), secret)
    text = _squeezed(turn.text)
    if not (text or calls):
        return LookupKeys()
    return LookupKeys(by_calls, _digest("content", (text, *_flat(written), *_context(before)), secret))


def state_digests(values: Iterable[Json], secret: bytes) -> frozenset[bytes]:
    """Returns digests by which the same state is recognised where a client carries it itself."""
    return frozenset([_digest("state", (_encode(value).decode(),), secret) for value in values])


def scope(parts: Iterable[str], secret: bytes) -> bytes:
    """Returns the digest of where a state is valid: backend, credential, model."""
    return _digest("scope", parts, secret)


def content_key(data: bytes, valid: bytes, secret: bytes) -> bytes:
    """Returns the key of a state's bytes that are valid in this scope."""
    return hashlib.blake2b(valid + data, digest_size=SIZE, key=secret[:_KEY], person=b"bytes").digest()


def _context(before: Turn | None) -> Iterator[str]:
    if before is None:
        return
    yield before.role
    yield _squeezed(before.text)
    for result in before.results:
        yield _squeezed(result.text)
    for block in before.blocks:
        if isinstance(block, Image):
            yield block.url
        elif isinstance(block, File):
            yield _encode(block.part).decode()
        elif isinstance(block, ToolCall):
            yield from (block.name, _canonical(block.arguments))


def _flat(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    return (value for row in rows for value in row)


def _squeezed(text: str) -> str:
    """Returns the text without blanks: clients trim it, and join its pieces in other ways."""
    return "".join(text.split())


def _canonical(arguments: str) -> str:
    """Returns arguments in one form: clients read them and write them again."""
    try:
        return _encode(_plain(decode_json(arguments.encode("utf-8", "replace")))).decode()
    except NotJson:
        return _squeezed(arguments)


def _plain(value: Json) -> Json:
    """Returns the value with whole numbers as integers: JavaScript knows no other form."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case _:
            return value


def _digest(kind: str, parts: Iterable[str], secret: bytes) -> bytes:
    hashed = hashlib.blake2b(digest_size=SIZE, key=secret[:_KEY], person=kind.encode())
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return hashed.digest()
