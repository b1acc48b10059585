"""What a JSON Schema says about the value at a place: which types it may have and in which order its keys stand."""

from typing import Final, TypeAlias
from urllib.parse import unquote

from gateway.types import Json, JsonObject

# Every schema that speaks about one place: alternatives and conjuncts alike.
Views: TypeAlias = tuple[JsonObject, ...]

_BRANCHES: Final = ("anyOf", "oneOf", "allOf")
_MAX_POINTER: Final = 64


class Schema:
    """One document. References are followed inside it only; a cycle of them is no trouble."""

    def __init__(self, document: JsonObject) -> None:
        self._document: Json = dict(document)
        # By identity: the schemas are parts of a document that lives as long as this does.
        self._expanded: dict[int, Views] = {}
        self.root = self._expand(self._document)

    def member(self, views: Views, key: str) -> Views:
        """What is said about the value of an object's key."""
        found: dict[int, JsonObject] = {}
        for view in views:
            properties = view.get("properties")
            if isinstance(properties, dict) and key in properties:
                self._collect(properties[key], found)
            else:
                self._collect(view.get("additionalProperties"), found)
        return tuple(found.values())

    def element(self, views: Views, position: int) -> Views:
        """What is said about an array's element."""
        found: dict[int, JsonObject] = {}
        for view in views:
            items = view.get("items")
            tuples = view.get("prefixItems", items)
            if isinstance(tuples, list) and position < len(tuples):
                self._collect(tuples[position], found)
            else:
                self._collect(view.get("additionalItems") if isinstance(items, list) else items, found)
        return tuple(found.values())

    def _collect(self, schema: Json, found: dict[int, JsonObject]) -> None:
        for view in self._expand(schema):
            found.setdefault(id(view), view)

    def _expand(self, schema: Json) -> Views:
        """The schema itself and every one that it refers to about the same place."""
        known = self._expanded.get(id(schema))
        if known is not None:
            return known
        found: dict[int, JsonObject] = {}
        waiting: list[Json] = [schema]
        while waiting:
            view = waiting.pop()
            if not isinstance(view, dict) or id(view) in found:
                continue
            found[id(view)] = view
            waiting.append(self._resolve(view.get("$ref")))
            for branch in _BRANCHES:
                alternatives = view.get(branch)
                if isinstance(alternatives, list):
                    waiting.extend(alternatives)
        views = tuple(found.values())
        if views:
            self._expanded[id(schema)] = views
        return views

    def _resolve(self, reference: Json) -> Json:
        """A JSON pointer in a fragment (RFC 6901, section 6); None for anything else."""
        if not isinstance(reference, str) or not reference.startswith("#"):
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


def types(views: Views) -> frozenset[str]:
    """The types that the value may have, as far as they are said."""
    said: set[str] = set()
    for view in views:
        kind = view.get("type")
        said.update(name for name in (kind if isinstance(kind, list) else [kind]) if isinstance(name, str))
    return frozenset(said)


def key_order(views: Views) -> dict[str, int]:
    """The rank of each key that the schemas name, in the order in which they name it."""
    rank: dict[str, int] = {}
    for view in views:
        properties = view.get("properties")
        if isinstance(properties, dict):
            for key in properties:
                rank.setdefault(key, len(rank))
    return rank
