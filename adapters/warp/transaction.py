"""An undo log: what a transaction changed, so that a rollback can take it back.

Transactions may nest: an inner one that is committed becomes a part of the outer one.
"""

from typing import Generic, TypeVar

S = TypeVar("S")


class Journal(Generic[S]):
    """Remembers, for every open transaction, the state of each key before its first change (None: it did not exist)."""

    def __init__(self) -> None:
        self._logs: list[dict[str, S | None]] = []

    @property
    def open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._logs)

    def begin(self) -> None:
        """Open a transaction."""
        self._logs.append({})

    def untouched(self, key: str) -> bool:
        """Whether the state of `key` must be saved with `save` before it is changed."""
        return key not in self._logs[-1] if self._logs else False

    def save(self, key: str, state: S | None) -> None:
        """Keep the state of a key as it is before its change."""
        self._logs[-1][key] = state

    def commit(self) -> bool:
        """Close the innermost transaction, keeping what it changed. False: none was open."""
        if not self._logs:
            return False
        closed = self._logs.pop()
        if self._logs:
            for key, state in closed.items():
                self._logs[-1].setdefault(key, state)
        return True

    def rollback(self) -> dict[str, S | None] | None:
        """Close the innermost transaction and give what is to be restored; None: none was open."""
        return self._logs.pop() if self._logs else None
