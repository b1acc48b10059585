"""Keeps an undo log of what a transaction changed, so that a rollback can restore it.

Transactions may nest: the changes of a committed inner transaction become part of the outer one.
"""

from typing import Generic, TypeVar

S = TypeVar("S")


class Journal(Generic[S]):
    """Keeps, for every open transaction, the state of each key before its first change (None: it did not exist)."""

    def __init__(self) -> None:
        # Each state has the number of states saved before it, which is the order in which a rollback restores them.
        self._logs: list[dict[str, tuple[int, S | None]]] = []
        self._saved = 0

    @property
    def open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._logs)

    def begin(self) -> None:
        """Opens a transaction."""
        self._logs.append({})

    def untouched(self, key: str) -> bool:
        """Returns whether the state of `key` must be saved with `save` before it is changed."""
        return key not in self._logs[-1] if self._logs else False

    def save(self, key: str, state: S | None) -> None:
        """Saves the state that a key had before its change."""
        self._logs[-1][key] = (self._saved, state)
        self._saved += 1

    def commit(self) -> bool:
        """Closes the innermost transaction and keeps its changes. Returns False if none was open."""
        if not self._logs:
            return False
        inner = self._logs.pop()
        if self._logs:
            outer = self._logs.pop()
            # The smaller journal is moved, so that committing nested transactions does not move all states each time.
            if len(inner) > len(outer):
                inner.update(outer)
                self._logs.append(inner)
            else:
                self._logs.append(outer)
                for key, saved in inner.items():
                    outer.setdefault(key, saved)
        return True

    def rollback(self) -> dict[str, S | None] | None:
        """Closes the innermost transaction and returns the states to restore, or None if none was open."""
        if not self._logs:
            return None
        saved = sorted(self._logs.pop().items(), key=lambda item: item[1][0])
        return {key: state for key, (_, state) in saved}
