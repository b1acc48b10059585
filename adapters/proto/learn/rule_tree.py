"""Builds the rules of a mapping from single findings: those of the items of one repeated field become one rule."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapters.proto.learn.spots import Way
from gateway.core.conversation import Json

# The order in which rules of one message stand.
ORDER: Final = ("error", "start", "reasoning", "text", "call", "json", "stopped_by", "finish", "usage")
# Keys that speak of the whole rule, so that two rules that differ in them stay apart.
_APART: Final = ("when", "json")
_TEXTS: Final = frozenset({"text", "reasoning"})


class RuleTree:
    """The rules for a message, and for the items of each repeated field below it."""

    def __init__(self) -> None:
        self._rules: list[dict[str, Any]] = []
        self._below: dict[str, RuleTree] = {}
        self._keys: dict[str, Json] = {}

    def add(self, each: Way, rule: Mapping[str, Any]) -> None:
        """Adds a rule for the items that these repeated fields lead to."""
        if each:
            self._below.setdefault(each[0], RuleTree()).add(each[1:], rule)
        else:
            self._rules.append(dict(rule))

    def mark(self, each: Way, key: str, value: Json) -> None:
        """Adds a key to the rule of the items of a repeated field, such as the number of a choice."""
        if each:
            self._below.setdefault(each[0], RuleTree()).mark(each[1:], key, value)
        else:
            self._keys[key] = value

    def written(self) -> list[dict[str, Any]]:
        """Returns the rules as settings.json holds them."""
        found = [(self._rank(rule), rule) for rule in self._joined()]
        found += [(below.first, {"each": name, **below.as_rule()}) for name, below in self._below.items()]
        return [rule for _, rule in sorted(found, key=lambda pair: pair[0])]

    @property
    def first(self) -> int:
        """The rank of the first rule."""
        ranks = [self._rank(rule) for rule in self._rules] + [below.first for below in self._below.values()]
        return min(ranks, default=len(ORDER))

    def as_rule(self) -> dict[str, Any]:
        """Returns the rules as one, for each item: with inner rules where one cannot hold them."""
        rules = self.written()
        if len(rules) == 1 and "each" not in rules[0]:
            return {**self._keys, **rules[0]}
        return {**self._keys, "rules": rules}

    @staticmethod
    def _rank(rule: Mapping[str, Any]) -> int:
        return min(ORDER.index(key) for key in rule if key in ORDER)

    def _joined(self) -> Iterator[dict[str, Any]]:
        joined: list[dict[str, Any]] = []
        for rule in sorted(self._rules, key=self._rank):
            for other in joined:
                if _fit_together(rule, other):
                    other.update(rule)
                    break
            else:
                joined.append(dict(rule))
        yield from joined


def _fit_together(rule: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rules can be one: they read other things, under the same conditions. A mode is that of texts."""
    read = (rule.keys() & other.keys()) - {*_APART, "mode"}
    same_mode = not (_TEXTS & rule.keys() and _TEXTS & other.keys()) or rule.get("mode") == other.get("mode")
    same = all(rule.get(key) == other.get(key) for key in _APART)
    return same and same_mode and not read and "error" not in {*rule, *other}
