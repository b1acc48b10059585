"""Checks the names of one request template and collects those that it uses, for messages and for JSON alike."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.rendering import Condition
from adapters.proto.backend.template_keys import AS, BY, CALL, CASE, EACH, MARK, WITH, WITHOUT, check_keys
from adapters.proto.backend.template_names import Scope, absent_name
from gateway.core.conversation import Json

EFFORT: Final = "$effort"
CALLS: Final = "$calls"
TURNS: Final = "$turns"


class Written(msgspec.Struct, frozen=True):
    """A part of a template, with the names that it may use and its place."""

    template: Json
    scope: Scope
    place: str


class Forms(msgspec.Struct, frozen=True):
    """The forms of the items of a list by variant, or those of a choice by word. `by` is the name by which variants
    differ; None: all items have one form, that of the empty variant."""

    name: str
    by: str | None
    written: Mapping[str, Written]


class UsedNames:
    """The names that one template uses, with their `$`.

    `names` are those that are sent, and `asked` those of conditions: a flag in a condition counts as sent, because the
    condition can tell all of it. `variants` are the variants of each list of items and the words of each choice,
    `absent` the names of which a part needs that they have no value, and `efforts` the value of each reasoning effort
    in each field.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.asked: set[str] = set()
        self.variants: dict[str, frozenset[str]] = {}
        self.absent: set[str] = set()
        self.efforts: list[Mapping[str, Json]] = []
        self._scopes: dict[str, list[Scope]] = {}

    def use(self, name: str, scope: Scope, place: str, fitting: Sequence[str] = ()) -> None:
        """Records a name that is sent. Raises OptionError for one that does not exist here; `fitting` are those that
        can stand at the place."""
        if not scope.knows(name):
            raise absent_name(name, scope, place, fitting)
        self.names.add(name)
        self._scopes.setdefault(name, []).append(scope)

    def uses(self, name: str, scope: Scope) -> bool:
        """Returns whether the name is used with the names of this scope."""
        return any(one is scope for one in self._scopes.get(name, ()))

    def uses_beside(self, name: str, other: str) -> bool:
        """Returns whether the name is used where another one with one value exists, too."""
        return any(other in scope.kinds for scope in self._scopes.get(name, ()))

    def has_state_of(self, owner: str) -> bool:
        """Returns whether the state of the reasoning, or of a call, has a place."""
        return any(("$arguments" in scope.kinds) is (owner == "call") for scope in self._scopes.get("$opaque", ()))

    def condition(self, template: Mapping[str, Json], scope: Scope, place: str) -> Condition | None:
        """Returns the condition in `$with` and `$without`; None: there is none. Raises OptionError."""
        needed = self._listed(template, WITH, scope, place)
        absent = self._listed(template, WITHOUT, scope, place)
        if both := [name for name in needed if name in absent]:
            raise mapping_error(f"{place}.{WITHOUT}", f"{both[0]} is in {WITH}, too")
        self.absent.update(absent)
        return Condition(needed, absent) if needed or absent else None

    def _listed(self, template: Mapping[str, Json], key: str, scope: Scope, place: str) -> tuple[str, ...]:
        if key not in template:
            return ()
        written, place = template[key], f"{place}.{key}"
        names = written if isinstance(written, list) else [written]
        found = [name for name in names if isinstance(name, str) and name.startswith(MARK)]
        if not found or len(found) != len(names):
            raise mapping_error(place, 'write one name, such as "$system", or a list of names')
        for name in found:
            if not scope.knows(name):
                raise absent_name(name, scope, place)
            self.asked.add(name)
            if scope.kind(name) == "flag":
                self.use(name, scope, place)
        return tuple(found)

    def each(self, template: Mapping[str, Json], scope: Scope, place: str, *more: str) -> Forms:
        """Returns the list of an `$each` and its variants. `more`: keys that may stand beside the variants. Raises
        OptionError."""
        name = template[EACH]
        if not isinstance(name, str) or name not in scope.items:
            raise unknown_name(f"{place}.{EACH}", f"there is no list {name!r} here", str(name), scope.items)
        self.names.add(name)
        items = scope.items[name]
        if AS in template or not items.by:
            check_keys(template, (EACH, AS), place)
            if AS not in template:
                raise mapping_error(place, f"{name} needs the key {AS!r}")
            return Forms(name, None, {"": Written(template[AS], items.all(), f"{place}.{AS}")})
        if template.get(BY) != items.by:
            raise mapping_error(f"{place}.{BY}", f"the items of {name} differ by {items.by}")
        check_keys(template, (EACH, BY, *more, *items.scopes), place)
        if missing := [word for word in items.required if word not in template]:
            raise mapping_error(place, f"{name} needs the variant {missing[0]!r}")
        variants = {
            word: Written(template[word], inner, f"{place}.{word}")
            for word, inner in items.scopes.items()
            if word in template
        }
        self.variants[name] = self.variants.get(name, frozenset()) | variants.keys()
        return Forms(name, items.by, variants)

    def call(self, template: Mapping[str, Json], scope: Scope, place: str) -> Written:
        """Returns the form of the one call of a turn. Raises OptionError."""
        check_keys(template, (CALL,), place)
        if CALLS not in scope.items:
            raise mapping_error(f"{place}.{CALL}", "only the variant 'assistant' of $turns has calls")
        self.names |= {CALL, CALLS}
        return Written(template[CALL], scope.items[CALLS].all(), f"{place}.{CALL}")

    def case(self, template: Mapping[str, Json], scope: Scope, place: str) -> Forms:
        """Returns the name of a `$case` and the form of each word. Raises OptionError."""
        name = template[CASE]
        words = scope.cases.get(name, ()) if isinstance(name, str) else ()
        if not isinstance(name, str) or not words:
            raise unknown_name(f"{place}.{CASE}", f"there are no cases of {name!r}", str(name), scope.cases)
        check_keys(template, (CASE, *words), place)
        self.names.add(name)
        found = {word: Written(value, scope, f"{place}.{word}") for word, value in template.items() if word != CASE}
        self.variants[name] = self.variants.get(name, frozenset()) | found.keys()
        if name == EFFORT:
            self.efforts.append({word: template[word] for word in found})
        return Forms(name, None, found)
