"""Defines a dialect's part of the published OpenAPI document: its operations, and references to its types."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

# Any: a JSON Schema is untyped.
Schema: TypeAlias = dict[str, Any]

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
REFERENCE: Final = "#/components/schemas/{name}"


class QueryParameter(NamedTuple):
    """A parameter of the query that clients may send; `schema` is that of its value."""

    name: str
    description: str
    schema: Schema


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What the document says of a route.

    `name` is a Python name, of which the operation's id is made; `tag` the group that it is listed in. `answers` are
    the schemas of its successes, by media type; `request` is the type of its body. `types` are all types that
    `answers` refers to. No two types of the document may have the same name. `parameters` are those of the query.
    """

    name: str
    description: str
    tag: str
    answers: Mapping[str, Schema]
    request: type[msgspec.Struct] | None = None
    types: tuple[type[msgspec.Struct], ...] = ()
    parameters: tuple[QueryParameter, ...] = ()


def reference(kind: type[msgspec.Struct]) -> Schema:
    """Returns a reference to the schema of this type."""
    return {"$ref": REFERENCE.format(name=kind.__name__)}


def events_of(description: str, *data: Schema) -> Schema:
    """Returns the schema of every event of a stream of server-sent events, by the schemas of their data."""
    fields = {"event": {"type": "string"}, "data": {"anyOf": [*data]}}
    return {"type": "object", "description": description, "properties": fields, "required": ["data"]}


def json_text(*content: Schema) -> Schema:
    """Returns the schema of a text that is JSON with one of these schemas."""
    return {"type": "string", "contentMediaType": JSON, "contentSchema": {"anyOf": [*content]}}
