"""Finds which fields the rules of a mapping name, and for what, so that the others may change without an effect."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from adapters.proto.backend.options import ReadRule, Tensor

# Keys whose values are no paths. A new key is taken for a path, which is the safe side.
_WORDS: Final = frozenset({"mode", "on", "reason", "reasons", "none", "failures"})
# The value of a wrapper has two paths.
_LAST: Final = re.compile(r"(\w+?)(?:\[[^\]]*\])?(?:\.(value))?\Z")
_MATCHED: Final = re.compile(r"\[(\w+)=")


class NamedFields(msgspec.Struct, frozen=True):
    """The names of the fields that are read as texts, as token counts, and as anything else, each at the end of its
    path (of a wrapper also the name of its value). `tensors`: a rule reads tensors, whose fields no path names."""

    texts: frozenset[str]
    counts: frozenset[str]
    others: frozenset[str]
    tensors: bool

    @property
    def texts_alone(self) -> bool:
        """Whether nothing but the text depends on the value of a field that is read as a text."""
        return not self.tensors and self.texts.isdisjoint(self.counts | self.others)

    def is_count(self, name: str) -> bool:
        """Returns whether only token counts depend on the values of the fields of this name."""
        return name in self.counts and name not in self.others

    def is_named(self, name: str) -> bool:
        """Returns whether a path ends in a field of this name."""
        return name in self.texts or name in self.counts or name in self.others


def named_fields(rules: tuple[ReadRule, ...]) -> NamedFields:
    """Returns the names of all rules. They are compared without their messages, which is the safe side, too."""
    texts: set[str] = set()
    counts: set[str] = set()
    others: set[str] = set()
    tensors = False
    waiting = list(rules)
    while waiting:
        rule = waiting.pop()
        waiting += rule.rules
        rest = msgspec.structs.replace(rule, rules=(), text=None, reasoning=None, usage=None)
        for value, names in (((rule.text, rule.reasoning), texts), (rule.usage, counts), (rest, others)):
            for path in _paths(value):
                names |= path.names
                others |= path.matched
                tensors |= path.tensor
    return NamedFields(frozenset(texts), frozenset(counts), frozenset(others), tensors)


class _Path(msgspec.Struct, frozen=True):
    names: frozenset[str] = frozenset()
    matched: frozenset[str] = frozenset()
    tensor: bool = False


def _paths(value: Any, *, repeated: bool = False) -> Iterator[_Path]:
    """Yields the paths in a part of a rule. `repeated`: to a field whose items other paths read. (Any: of the types of
    msgspec.)"""
    match value:
        case str():
            last = None if repeated else _LAST.search(value)
            names = frozenset(filter(None, last.groups())) if last is not None else frozenset()
            yield _Path(names, frozenset(_MATCHED.findall(value)))
        case Tensor():
            yield _Path(tensor=True)
        case msgspec.Struct():
            for key in value.__struct_fields__:
                if key not in _WORDS:
                    yield from _paths(getattr(value, key), repeated=key == "each")
        case Mapping():
            for path, condition in value.items():
                yield from _paths(path)
                yield from _paths(condition)
        case tuple():
            for item in value:
                yield from _paths(item)
        case _:
            pass
