"""Finds what belongs to a model's name among exact names and patterns, which end in `*`."""

from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar

# The pattern that every name fits.
ANY: Final = "*"

Entry = TypeVar("Entry")


class ModelNames(Generic[Entry]):
    """The entries of exact names and of patterns.

    An exact name comes first, then the longest pattern that the name begins with; `"*"` fits every name.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._exact = dict(entries)
        patterns = sorted(filter(is_pattern, entries), key=len, reverse=True)
        self._patterns = tuple([(pattern.removesuffix(ANY), entries[pattern]) for pattern in patterns])

    def find(self, model: str) -> Entry | None:
        """Returns the entry of a name, or None."""
        entry = self._exact.get(model)
        if entry is not None:
            return entry
        return next((entry for beginning, entry in self._patterns if model.startswith(beginning)), None)


def is_pattern(name: str) -> bool:
    """Returns whether a key of `models` is a pattern."""
    return name.endswith(ANY)


def exact_names(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names that are no patterns."""
    return tuple([name for name in names if not is_pattern(name)])
