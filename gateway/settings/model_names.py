"""Finds what belongs to a model's name among exact names and patterns, which end in `*`."""

from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar

from gateway.core.model_facts import CLAUDE_PREFIX

# The pattern that every name fits.
ANY: Final = "*"

# The tag that clients of Ollama write behind a name that has none.
DEFAULT_TAG: Final = ":latest"

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
        for beginning, pattern_entry in self._patterns:
            if model.startswith(beginning):
                return pattern_entry
        return None

    def known_name(self, model: str) -> str:
        """Returns the name of a model without the default tag and without the beginning that a list for Claude Code
        puts before it, unless it is known with them, or only with them."""
        if model in self._exact or not (model.endswith(DEFAULT_TAG) or model.startswith(CLAUDE_PREFIX)):
            return model
        unmarked = model.removeprefix(CLAUDE_PREFIX)
        for bare in (unmarked, unmarked.removesuffix(DEFAULT_TAG)):
            if bare in self._exact:
                return bare
        bare = unmarked.removesuffix(DEFAULT_TAG)
        return model if self.find(bare) is None else bare


def is_pattern(name: str) -> bool:
    """Returns whether a key of `models` is a pattern."""
    return name.endswith(ANY)


def exact_names(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names that are no patterns."""
    return tuple([name for name in names if not is_pattern(name)])
