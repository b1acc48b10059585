"""Keeps the answers of one client's connection, also those that are not stored, so that later requests of it continue
them. Loaded with the first such connection."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from gateway.core.notices import Notice
from gateway.dialects.stateful import StoringEncoder
from gateway.server.state.answer_store import AnswerStore, Found
from gateway.server.telemetry.request_context import RequestContext

MOST_BYTES: Final = 16 * 2**20
# Of all connections of a process.
MOST_TOGETHER: Final = 16 * MOST_BYTES
_NOT_KEPT: Final = Notice(
    "state",
    "failed",
    "RESPONSE_NOT_STORED",
    f"the history has more than {MOST_BYTES} bytes, the most that a connection remembers",
    level="warning",
)
# Nobody else could continue the answer: a part of its history would be missing.
_UNSTORED_BEFORE: Final = Notice(
    "state",
    "ignored",
    "RESPONSE_NOT_STORED",
    "it refers to a response that only its connection remembers",
    level="info",
)


class ConnectionMemory:
    """The entries of the answers of one connection, `MOST_BYTES` of them at most: the oldest answers are forgotten
    first, and what continues one of them is then refused."""

    def __init__(self, memories: "ConnectionMemories") -> None:
        self.size = 0
        self._memories = memories
        # By the order of the answers: the entries of each.
        self._answers: list[dict[str, bytes]] = []
        self._entries: dict[str, bytes] = {}

    def over(self, answers: AnswerStore | None) -> "ConnectionAnswers":
        """Returns the answers of a request of the connection: these, and those that are stored for its client."""
        return ConnectionAnswers(self, answers)

    def get(self, name: str) -> bytes | None:
        """Returns an entry; None: it is not remembered."""
        return self._entries.get(name)

    def put(self, entries: Sequence[tuple[str, bytes]]) -> None:
        """Remembers an answer."""
        answer = dict(entries)
        self._answers.append(answer)
        self._entries |= answer
        self._grow(_size(answer))
        while self.size > MOST_BYTES:
            self.forget()
        self._memories.bound()

    def forget(self) -> None:
        """Forgets the oldest answer."""
        oldest = self._answers.pop(0)
        self._grow(-_size(oldest))
        for name, entry in oldest.items():
            # A later answer may have an entry of the same name: the ids of some items are the backend's.
            if self._entries.get(name) is entry:
                del self._entries[name]

    def drop(self, name: str) -> None:
        """Forgets one entry. The others of its answer stay: later answers may have it in their history."""
        if self._entries.pop(name, None) is None:
            return
        for answer in self._answers:
            if (entry := answer.pop(name, None)) is not None:
                self._grow(-len(name) - len(entry))

    def _grow(self, size: int) -> None:
        self.size += size
        self._memories.size += size


class ConnectionMemories:
    """The memories of all connections of a process, `MOST_TOGETHER` bytes at most: the fullest one forgets first, so
    that a client which fills many of them does not empty those of others."""

    def __init__(self) -> None:
        self.size = 0
        self._open: set[ConnectionMemory] = set()

    def open(self) -> ConnectionMemory:
        """Returns the memory of another connection."""
        memory = ConnectionMemory(self)
        self._open.add(memory)
        return memory

    def close(self, memory: ConnectionMemory) -> None:
        """Forgets a connection, which is closed."""
        self._open.discard(memory)
        self.size -= memory.size

    def bound(self) -> None:
        """Has answers forgotten until all are within the bound."""
        while self.size > MOST_TOGETHER:
            max(self._open, key=_fullness).forget()


class ConnectionAnswers:
    """The answers that one request of a connection may continue: those of the memory, and those that are stored.
    `unstored` says why the answer to the request is not stored either; None: it refers to stored ones alone."""

    def __init__(self, memory: ConnectionMemory, stored: AnswerStore | None) -> None:
        self._memory = memory
        self._stored = stored
        self.unstored: Notice | None = None

    async def find(self, missing: Callable[[Found], Sequence[str]]) -> Found:
        """Returns the entries that `missing` names, as `AnswerStore.find` does."""
        found: dict[str, bytes | None] = {}
        while names := missing(found):
            found |= {name: self._memory.get(name) for name in names}
            unknown = [name for name in names if found[name] is None]
            if len(unknown) < len(names):
                self.unstored = _UNSTORED_BEFORE
            if unknown and self._stored is not None:
                found |= await self._stored.find(partial(_once, unknown))
        return found

    async def record(self, encoder: StoringEncoder, context: RequestContext) -> None:
        """Remembers the answer of an encoder that has all its events; where that is too much, the answer says so."""
        record = encoder.record(None)
        if record.size > MOST_BYTES:
            encoder.deny(_NOT_KEPT)
            context.note((_NOT_KEPT,))
        else:
            self._memory.put(record.entries)


def _once(names: Sequence[str], found: Found) -> Sequence[str]:
    return () if found else names


def _fullness(memory: ConnectionMemory) -> int:
    return memory.size


def _size(entries: dict[str, bytes]) -> int:
    return sum(len(name) + len(entry) for name, entry in entries.items())
