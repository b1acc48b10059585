"""Stores answers as a chain: each continues the one before it, and has the items of its own turn alone.

An answer is two entries: the items of its own input and of its output, and the object around them. The next request
needs the object of the answer that it continues, which names those before it, and the items of all of them: a history
costs what its items cost, however many answers it consists of.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.dialects.stateful import AnswerRecord

# What has been looked up: entries by their names, None for one that is not stored.
Entries: TypeAlias = Mapping[str, bytes | None]
# Makes the error about the answer with this id.
Refuse: TypeAlias = Callable[[str], InvalidRequest]

# In the place of the object around the items.
_NO_OBJECT: Final = b"{}"


class StoredAnswer(msgspec.Struct, frozen=True):
    """The entry of an answer.

    `ancestors` are the ids of the answers before it, the oldest first; `size` is the number of bytes of the items of
    all of them and of this one; `renewed_at` is the Unix time at which all of them had been written or renewed;
    `named_items` are the ids of its items that have an entry of their own. `response` is the JSON of the object, whose
    field with the items of the output is empty.
    """

    ancestors: tuple[str, ...]
    size: int
    renewed_at: int
    named_items: tuple[str, ...]
    response: msgspec.Raw


class StoredItems(msgspec.Struct, frozen=True):
    """The entry with the items of an answer: those of its own input, and its output."""

    # Any: msgspec cannot read the recursive Json type.
    input: list[dict[str, Any]]
    output: list[dict[str, Any]]


class StoredInput(msgspec.Struct, frozen=True):
    """What the record of an answer needs of its request: the items of its own input, and the answers before it with
    their bytes and the time at which they were renewed."""

    items: Sequence[dict[str, Json]]
    ancestors: tuple[str, ...]
    size: int
    renewed_at: int


class StoredHistory(msgspec.Struct, frozen=True):
    """The items before those of the request, the oldest first, the answers that they come from, the bytes of the items,
    and the Unix time at which all of them had been written or renewed."""

    items: Sequence[dict[str, Json]] = ()
    answers: tuple[str, ...] = ()
    size: int = 0
    renewed_at: int = 0

    def with_own(self, items: Iterable[dict[str, Json]]) -> StoredInput:
        """Returns what is stored of the request with these items."""
        return StoredInput([*items], self.answers, self.size, self.renewed_at)


class Chain(msgspec.Struct, frozen=True):
    """The entries of one dialect's answers.

    `answer`, `items` and `item` begin the names of its entries, and say the form of each: one that changes gets another
    name, so that gateways of two versions may use one store. `output` is the field of the object with the items of its
    output.
    """

    answer: str
    items: str
    item: str
    output: str

    def answer_entry(self, identity: str) -> str:
        """Returns the name of the entry of an answer."""
        return self.answer + identity

    def items_entry(self, identity: str) -> str:
        """Returns the name of the entry with the items of an answer."""
        return self.items + identity

    def item_entry(self, identity: str) -> str:
        """Returns the name of the entry that names the answer of an item."""
        return self.item + identity

    def entries_of(self, identity: str, stored: StoredAnswer) -> tuple[str, ...]:
        """Returns the names of all entries of an answer, its own first."""
        return self.answer_entry(identity), self.items_entry(identity), *map(self.item_entry, stored.named_items)

    def stored(self, identity: str, found: Entries) -> StoredAnswer | None:
        """Returns the entry of an answer; None: it is not stored."""
        entry = found.get(self.answer_entry(identity))
        return None if entry is None else msgspec.json.decode(entry, type=StoredAnswer)

    def wanted(self, identity: str, found: Entries) -> Iterator[str]:
        """Yields the entry of an answer, and those with the items of it and of all answers before it, as far as they
        are known."""
        yield self.answer_entry(identity)
        yield self.items_entry(identity)
        if (stored := self.stored(identity, found)) is not None:
            yield from map(self.items_entry, stored.ancestors)

    def history(self, identity: str, found: Entries, broken: Refuse) -> StoredHistory | None:
        """Returns the items of an answer and of those before it; None: it is not stored. Raises the error of `broken`
        where an answer before it is not: a shorter history would be another conversation."""
        stored = self.stored(identity, found)
        if stored is None:
            return None
        answers = (*stored.ancestors, identity)
        items: list[dict[str, Json]] = []
        for answer in answers:
            stands = found.get(self.items_entry(answer))
            if stands is None:
                raise broken(identity)
            own = read_items(stands)
            items += own.input
            items += own.output
        return StoredHistory(items, answers, stored.size, stored.renewed_at)

    def record(
        self,
        identity: str,
        stored: StoredInput,
        answer: dict[str, Json],
        named: Sequence[str],
        now: int,
        renew_s: float | None,
    ) -> AnswerRecord:
        """Returns what is stored of a complete answer, whose items with these ids are `named`: its own entry last,
        without which nothing refers to the others. Of one that is only continued (`renew_s` None) the object around the
        items is not kept."""
        items = msgspec.json.encode({"input": stored.items, "output": answer[self.output]})
        written = _NO_OBJECT if renew_s is None else msgspec.json.encode({**answer, self.output: []})
        size = stored.size + len(items)
        renews = not stored.ancestors or (renew_s is not None and now - stored.renewed_at >= renew_s)
        renewed_at = now if renews else stored.renewed_at
        entry = StoredAnswer(stored.ancestors, size, renewed_at, tuple(named), msgspec.Raw(written))
        earlier = [name(ancestor) for ancestor in stored.ancestors for name in (self.answer_entry, self.items_entry)]
        return AnswerRecord(
            (
                (self.items_entry(identity), items),
                *[(self.item_entry(name), identity.encode()) for name in named],
                (self.answer_entry(identity), msgspec.json.encode(entry)),
            ),
            tuple(earlier) if renews else (),
            size,
            len(stored.ancestors) + 1,
        )


class ReadAnswer:
    """Asks for an answer. `encode` makes it of its two entries, `not_found` the error where it is not stored."""

    def __init__(
        self, chain: Chain, identity: str, encode: Callable[[StoredAnswer, bytes], bytes], not_found: Refuse
    ) -> None:
        self._chain = chain
        self._id = identity
        self._encode = encode
        self._not_found = not_found

    def missing(self, found: Entries) -> Sequence[str]:
        return not_looked_up([self._chain.answer_entry(self._id), self._chain.items_entry(self._id)], found)

    def encode(self, found: Entries) -> bytes:
        stored, items = self._chain.stored(self._id, found), found.get(self._chain.items_entry(self._id))
        if stored is None or items is None:
            raise self._not_found(self._id)
        return self._encode(stored, items)

    def deletes(self, found: Entries) -> Sequence[str]:
        return ()


class DeleteAnswer:
    """Asks to delete an answer; `body` says that it is. Nothing can continue it then, and nothing that continued it can
    be continued."""

    def __init__(self, chain: Chain, identity: str, body: bytes, not_found: Refuse) -> None:
        self._chain = chain
        self._id = identity
        self._body = body
        self._not_found = not_found

    def missing(self, found: Entries) -> Sequence[str]:
        return not_looked_up([self._chain.answer_entry(self._id)], found)

    def encode(self, found: Entries) -> bytes:
        self._stored(found)
        return self._body

    def deletes(self, found: Entries) -> Sequence[str]:
        return self._chain.entries_of(self._id, self._stored(found))

    def _stored(self, found: Entries) -> StoredAnswer:
        stored = self._chain.stored(self._id, found)
        if stored is None:
            raise self._not_found(self._id)
        return stored


def read_items(entry: bytes) -> StoredItems:
    """Returns the items of an answer."""
    return _ITEMS.decode(entry)


def not_looked_up(names: Iterable[str], found: Entries) -> tuple[str, ...]:
    """Returns the names that have not been looked up yet, each once."""
    return tuple([name for name in dict.fromkeys(names) if name not in found])


_ITEMS: Final = msgspec.json.Decoder(StoredItems)
