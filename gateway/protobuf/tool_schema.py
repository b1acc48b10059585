"""Looks up what a JSON Schema defines for the value at a place: its types and the order of its keys."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, TypeAlias
from urllib.parse import unquote

from gateway.core.conversation import Json, JsonObject

# Every schema that applies to one place: alternatives and conjuncts alike.
Views: TypeAlias = tuple[JsonObject, ...]

_BRANCHES: Final = ("anyOf", "oneOf", "allOf")
_MAX_POINTER: Final = 64
# The limit of schemas, and of keys of schemas, that are examined for one response. The tools of an agent have some
# thousands; hostile references can lead from every schema to every other.
MAX_STEPS: Final = 250_000


class Steps:
    """The remaining work, for all schemas of one response. `exhausted`: more work was requested than was left."""

    def __init__(self, left: int = MAX_STEPS) -> None:
        self.left = left

    @property
    def exhausted(self) -> bool:
        return self.left < 0

    def spend(self, steps: int) -> bool:
        """Subtracts the steps and returns whether so many were left."""
        self.left = max(self.left - steps, -1)
        return self.left >= 0


class Schema:
    """One schema document. References are followed only inside it; cycles are allowed.

    Every place is resolved once, whatever the number of values at it. When the steps are exhausted, places that were
    not resolved before count as undefined.
    """

    def __init__(self, document: JsonObject, steps: Steps) -> None:
        self.steps = steps
        self._document: Json = dict(document)
        # Keyed by identity: the schemas are parts of a document that lives as long as this object.
        self._expanded: dict[int, Views] = {}
        self._resolved: dict[str, Json] = {}
        self._unknown = Place(self, ())
        self._places: dict[tuple[int, ...], Place] = {(): self._unknown}
        self.root = self.place([self._document])

    def place(self, schemas: Iterable[Json]) -> "Place":
        """Returns the place that all of the schemas describe."""
        found: dict[int, JsonObject] = {}
        for schema in schemas:
            views = self._expand(schema)
            if not self.steps.spend(len(views)):
                return self._unknown
            for view in views:
                found.setdefault(id(view), view)
        known = tuple(found)
        if known not in self._places:
            self._places[known] = Place(self, tuple(found.values()))
        return self._places[known]

    def _expand(self, schema: Json) -> Views:
        """Returns the schema and every schema that it references for the same place."""
        known = self._expanded.get(id(schema))
        if known is not None:
            return known
        found: dict[int, JsonObject] = {}
        waiting: list[Json] = [schema]
        while waiting and self.steps.spend(1):
            view = waiting.pop()
            if not isinstance(view, dict) or id(view) in found:
                continue
            found[id(view)] = view
            reference = view.get("$ref")
            if isinstance(reference, str):
                if reference not in self._resolved:
                    self._resolved[reference] = self._resolve(reference)
                waiting.append(self._resolved[reference])
            for branch in _BRANCHES:
                alternatives = view.get(branch)
                if isinstance(alternatives, list):
                    waiting.extend(alternatives)
        views = tuple(found.values())
        if views:
            self._expanded[id(schema)] = views
        return views

    def _resolve(self, reference: str) -> Json:
        """Resolves a JSON pointer in a fragment (RFC 6901, section 6); None for any other reference."""
        if not reference.startswith("#"):
            return None
        place = self._document
        names = unquote(reference[1:]).split("/")
        if names[0] or len(names) > _MAX_POINTER:
            return None
        for name in names[1:]:
            name = name.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict):
                place = place.get(name)
            elif isinstance(place, list) and name.isdecimal() and len(name) < 9 and int(name) < len(place):
                place = place[int(name)]
            else:
                return None
        return place


class Place:
    """A place in a document's values, and the schemas that describe it."""

    def __init__(self, schema: Schema, views: Views) -> None:
        self._schema = schema
        self._views = views
        self._members: dict[str, Place] = {}
        self._elements: dict[int, Place] = {}

    def member(self, key: str) -> "Place":
        """Returns the place of the value of an object's key."""
        if key not in self.order:
            return self._other_member
        known = self._members.get(key)
        if known is None:
            known = self._members[key] = self._schema.place(self._member_schemas(key))
        return known

    def element(self, position: int) -> "Place":
        """Returns the place of an array's element."""
        position = min(position, self._longest_tuple)
        known = self._elements.get(position)
        if known is None:
            known = self._elements[position] = self._schema.place(self._element_schemas(position))
        return known

    @cached_property
    def types(self) -> frozenset[str]:
        """Returns the types that the value may have, as far as the schemas define them."""
        found: set[str] = set()
        for view in self._views:
            kind = view.get("type")
            names = kind if isinstance(kind, list) else [kind]
            if self._schema.steps.spend(len(names)):
                found.update(name for name in names if isinstance(name, str))
        return frozenset(found)

    @cached_property
    def order(self) -> dict[str, int]:
        """Returns the rank of each key that the schemas name, in their order."""
        rank: dict[str, int] = {}
        for view in self._views:
            properties = view.get("properties")
            if isinstance(properties, dict) and self._schema.steps.spend(len(properties)):
                for key in properties:
                    rank.setdefault(key, len(rank))
        return rank

    @cached_property
    def _other_member(self) -> "Place":
        """Returns the place of the value of a key that no schema names."""
        return self._schema.place(view.get("additionalProperties") for view in self._views)

    def _member_schemas(self, key: str) -> Iterator[Json]:
        for view in self._views:
            properties = view.get("properties")
            if isinstance(properties, dict) and key in properties:
                yield properties[key]
            else:
                yield view.get("additionalProperties")

    def _element_schemas(self, position: int) -> Iterator[Json]:
        for view in self._views:
            tuples = _tuples(view)
            if tuples is not None and position < len(tuples):
                yield tuples[position]
            else:
                items = view.get("items")
                yield view.get("additionalItems") if isinstance(items, list) else items

    @cached_property
    def _longest_tuple(self) -> int:
        return max((len(_tuples(view) or ()) for view in self._views), default=0)


def _tuples(view: JsonObject) -> list[Json] | None:
    tuples = view.get("prefixItems", view.get("items"))
    return tuples if isinstance(tuples, list) else None
