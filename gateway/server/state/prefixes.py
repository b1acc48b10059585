"""Keeps the beginnings of conversations, so that the next request of each is read from where it is new.

Each worker keeps its own, in its memory alone: those of one API key apart from those of another, the latest ones,
within a bound. Where it is reached, an owner of more than half of them gets room from its own alone. They are let go
with the settings under which they were read, and when their key is forgotten. Nothing is kept of a request with state
off.

Of the first request of a conversation, which may be the only one, only a digest of one message is kept. The first one
that is kept is the one with which this message comes again.
"""

import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.dialect import ClientRequest, Dialect
from gateway.dialects.document import Document
from gateway.dialects.prefix import KnownPrefix, Prefix, Reading, read_whole
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext

# A smaller request is read in less time than a beginning is found.
LEAST: Final = 16 * 1024
# The memory of one beginning is at most this part of what is allowed for all.
_SHARE: Final = 6
# It is about so many times the body, and more.
_COPIES: Final = 4
# A body is compared with so many beginnings: of one agent, all have the same system prompt.
_COMPARED: Final = 16
# So many digests are kept, with some hundred bytes each.
_MOST_DIGESTS: Final = 4096
# A digest is one of so many bytes of a message.
_DIGESTED: Final = 4096


class _Owner(msgspec.Struct, frozen=True):
    """Whose beginnings these are: an API key, since it began an `epoch`, in the words of one dialect."""

    key: str
    dialect: str
    epoch: float


class Prefixes:
    """The beginnings that one worker keeps, in at most so many bytes. `remembers` says whether anything may be kept of
    a request, and `epochs` when each of some keys was last forgotten; None: that cannot be known, and nothing is kept.

    They are read in threads, and changed in the event loop alone."""

    def __init__(
        self,
        most_bytes: int,
        metrics: Metrics,
        remembers: Callable[[RequestContext], bool],
        epochs: Callable[[Sequence[str]], Sequence[float | None]],
    ) -> None:
        self._most_bytes = most_bytes
        self._metrics = metrics
        self._remembers = remembers
        self._epochs_of = epochs
        # As they were when they were last looked up, which is no work for every request.
        self._epochs: dict[str, float | None] = {}
        # Each owner's, the latest first; the owners and theirs by the time of the last request.
        self._kept: dict[_Owner, tuple[Prefix, ...]] = {}
        self._owned: Counter[_Owner] = Counter()
        self._by_age: OrderedDict[Prefix, _Owner] = OrderedDict()
        self._bytes = 0
        # Those of one message of each first request with its key, the oldest first.
        self._digests: OrderedDict[bytes, str] = OrderedDict()
        self._secret = secrets.token_bytes(32)
        metrics.prefix_bytes.set_function(lambda: self._bytes)

    def of(self, context: RequestContext, dialect: Dialect, size: int) -> "RequestPrefix | None":
        """Returns what a request of this size may have in common with earlier ones; None: nothing is kept of it."""
        too_large = size * _COPIES * _SHARE > self._most_bytes
        if size < LEAST or too_large or not self._remembers(context):
            return None
        epoch = self._epoch(context.key)
        return None if epoch is None else RequestPrefix(self, _Owner(context.key, dialect.name, epoch), dialect)

    def find(self, owner: _Owner, body: bytes) -> tuple[Prefix, int] | None:
        """Returns the beginning that has most in common with a body, and with how many of its bytes that begins; None:
        there is none."""
        best: Prefix | None = None
        most = 0
        for prefix in self._kept.get(owner, ())[:_COMPARED]:
            common = prefix.common(body)
            if common > most:
                best, most = prefix, common
                if common >= prefix.end:
                    break
        return None if best is None else (best, most)

    def digest(self, owner: _Owner, messages: Sequence[Json], place: int) -> bytes:
        """Returns the digest of a message at its place in a request."""
        keyed = blake2b(repr((owner, place)).encode(), key=self._secret, digest_size=16)
        keyed.update(msgspec.json.encode(messages[place])[:_DIGESTED])
        return keyed.digest()

    def has_seen(self, digests: Sequence[bytes]) -> bool:
        """Returns whether one of the digests is that of an earlier request."""
        return any([digest in self._digests for digest in digests])

    def keep_digest(self, owner: _Owner, digest: bytes) -> None:
        """Keeps the digest of a message of a first request."""
        self._metrics.prefix_requests.inc("new")
        if self._epoch(owner.key) != owner.epoch:
            return
        self._digests[digest] = owner.key
        self._digests.move_to_end(digest)
        if len(self._digests) > _MOST_DIGESTS:
            self._digests.popitem(last=False)

    def keep(self, owner: _Owner, new: Prefix, known: KnownPrefix | None) -> None:
        """Keeps a beginning, in the place of the one that it goes on from: which it has in common for the most part."""
        self._metrics.prefix_requests.inc("new" if known is None else "known")
        if self._epoch(owner.key) != owner.epoch:
            return
        if known is not None and 2 * known.count >= len(known.prefix.messages):
            self._drop(known.prefix)
        if new.size * _SHARE > self._most_bytes:
            return
        self._kept[owner] = (new, *self._kept.get(owner, ()))
        self._by_age[new] = owner
        self._bytes += new.size
        self._owned[owner] += new.size
        while self._bytes > self._most_bytes:
            takes_most = 2 * self._owned[owner] > self._bytes
            self._drop(self._kept[owner][-1] if takes_most else next(iter(self._by_age)))

    def forget(self, key: str) -> None:
        """Lets go of all that is kept of an API key."""
        for prefix in [prefix for prefix, owner in self._by_age.items() if owner.key == key]:
            self._drop(prefix)
        for digest in [digest for digest, owner in self._digests.items() if owner == key]:
            del self._digests[digest]

    def check_epochs(self) -> None:
        """Lets go of all that is kept of keys which have been forgotten since the last time."""
        before, keys = self._epochs, self.keys
        self._epochs = dict(zip(keys, self._epochs_of(keys), strict=True))
        for key in keys:
            if self._epochs[key] != before[key]:
                self.forget(key)

    @property
    def keys(self) -> Sequence[str]:
        """The API keys of which anything is kept."""
        return tuple({owner.key for owner in self._kept}.union(self._digests.values()))

    def _epoch(self, key: str) -> float | None:
        if key not in self._epochs:
            [self._epochs[key]] = self._epochs_of((key,))
        return self._epochs[key]

    def _drop(self, prefix: Prefix) -> None:
        owner = self._by_age.pop(prefix, None)
        if owner is None:
            return
        self._bytes -= prefix.size
        self._owned[owner] -= prefix.size
        rest = tuple([one for one in self._kept[owner] if one is not prefix])
        if rest:
            self._kept[owner] = rest
        else:
            del self._kept[owner], self._owned[owner]


class RequestPrefix:
    """What one request has in common with earlier ones."""

    def __init__(self, prefixes: Prefixes, owner: _Owner, dialect: Dialect) -> None:
        self._prefixes = prefixes
        self._owner = owner
        self._field = dialect.paths.param("messages")
        self._is_sought = True
        self._reading: Reading | None = None
        # What is to be kept: of a first request a digest.
        self._read: Prefix | bytes | None = None

    def is_known(self, body: bytes, most: int) -> bool:
        """Returns whether the body is known but for less than so many bytes, which have been read then."""
        found = self._prefixes.find(self._owner, body)
        if found is None or len(body) - found[1] < most:
            self._read_behind(found, body)
        return self._reading is not None

    def document(self, body: bytes) -> Document:
        """Returns the document of the request. Raises InvalidRequest like `read_document`."""
        if self._is_sought:
            self._read_behind(self._prefixes.find(self._owner, body), body)
        self._reading = self._reading or read_whole(self._field, body)
        return self._reading.document

    def _read_behind(self, found: tuple[Prefix, int] | None, body: bytes) -> None:
        self._is_sought = False
        known = None if found is None else found[0].known_until(found[1])
        self._reading = None if known is None else known.read(self._field, body)

    def settled(self, request: ClientRequest) -> ClientRequest:
        """Returns the request that was decoded of the document, with the very values of the earlier one."""
        reading = self._reading
        assert reading is not None  # the document has been read
        request = reading.settled(request)
        if reading.is_keepable:
            digests = [] if reading.known is not None else self._digests(reading.messages)
            if digests and not self._prefixes.has_seen(digests):
                self._read = digests[0]
            else:
                self._read = Prefix(reading, request)
        return request

    def keep(self) -> None:
        """Keeps the request for the next one of its conversation."""
        if isinstance(self._read, bytes):
            self._prefixes.keep_digest(self._owner, self._read)
        elif self._reading is not None and self._read is not None:
            self._prefixes.keep(self._owner, self._read, self._reading.known)

    def _digests(self, messages: Sequence[Json]) -> list[bytes]:
        """Returns the digest of the message that tells a conversation from others, and of the one that did so in an
        earlier request of it."""
        place = _telling(len(messages))
        places = (place, place // 2) if place else (0,)
        return [self._prefixes.digest(self._owner, messages, place) for place in places]


def _telling(count: int) -> int:
    """Returns the place of one of so many messages: behind the system prompt, and before the last ones, which clients
    mark anew with each request. It is a power of two, so that in the next requests it is the same or the double one."""
    return 1 << (count // 2).bit_length() - 1 if count > 1 else 0
