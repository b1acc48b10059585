"""Tables of a wire: each says once what the wire calls a thing, and is read in both directions.

How to read a table of a wire (`adapters/<wire>/table.py`):

- A row of a request is a field of the request's type, with its `Parameter` beside the type:
  `top_p: Annotated[float | None, Parameter("top_p")] = None`. The field is the name on the wire, the type is what a
  client may write (and what the OpenAPI document publishes), the Parameter says the canonical name (that of chat
  completions) and how docs describe it. A field whose type is a struct holds rows of its own.
- Most rows have the same value in both directions: `RequestTable` folds them at import into tuples, which
  `Section.read` (client -> canonical) and `Section.write` (canonical -> backend) go through in one loop.
- Where the value differs, the row has a function of the value: `read=`, `write=`. `SAMPLED` writes what the gateway
  made of the value in `Conversation.sampling`. A row that needs more than its value (two fields, the model's name) says
  `APART`: a function of the wire reads or writes it.
- `reported` and `refused` make rows without a canonical name. A row that only one direction has says `NEVER` for the
  other; a field that the request's type lacks stands in `beside`, by its path.
- `Words` maps words: reasons for an end, choices, tiers, roles, types of errors. Counts of tokens are a pair of
  functions (`usage.py`).
- Derived at import from all rows: `paths`, `supported`, `names`, `docs_rows`. Nothing else lists a field.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from enum import Enum
from operator import attrgetter
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from gateway.core.conversation import Conversation, Json, JsonObject
from gateway.core.errors import Unsupported

# What docs call it. `emulated`: the gateway does it where the backend cannot; `stored`: it does so itself.
Handling: TypeAlias = Literal["honoured", "emulated", "stored", "reported", "refused"]
Value = TypeVar("Value", bound=Hashable)

# The parts of a conversation that have canonical names, and that no adapter declares as parameters.
_PARTS: Final = frozenset({"messages", "tools"})
_FIRST: Final = ("model", "messages")


class Way(Enum):
    """What becomes of a value in one direction: it is sent as it is; a function of the wire, which knows more than the
    value, makes something of it; nothing; or the value that `Conversation.sampling` holds, which the gateway may have
    changed, is sent."""

    SAME = "same"
    APART = "apart"
    NEVER = "never"
    SAMPLED = "sampled"


SAME: Final = Way.SAME
APART: Final = Way.APART
NEVER: Final = Way.NEVER
SAMPLED: Final = Way.SAMPLED


class Parameter(msgspec.Struct, frozen=True):
    """One row of a request.

    `name`: the canonical name; empty: the field has none of its own. `also`: further canonical names of which the wire
    makes the same field. `how`: what docs say of it; None: the row of its object says it. `read` and `write`: what
    becomes of the value in each direction. `asks`: of a refused field, whether a value asks for anything; `reason`:
    what its client hears.
    """

    name: str = ""
    how: str | None = ""
    read: Way | Callable[[Any], Json] = SAME
    write: Way | Callable[[Any], Json] = SAME
    also: tuple[str, ...] = ()
    handling: Handling = "honoured"
    asks: Callable[[Any], bool] = bool
    reason: str = ""


def reported(how: str | None = "", name: str = "", write: Way = NEVER) -> Parameter:
    """Returns the row of a field that only a backend of the same API has; an answer without its effect is still an
    answer to the request. `name` and `write` are for one that clients of other APIs can ask for."""
    return Parameter(name, how, NEVER, write, handling="reported")


def refused(how: str = "", asks: Callable[[Any], bool] = bool, reason: str = "") -> Parameter:
    """Returns the row of a field that at most a backend of the same API has, and without which the answer would lack
    what it asks for."""
    return Parameter("", how, NEVER, NEVER, handling="refused", asks=asks, reason=reason)


class Row(msgspec.Struct, frozen=True):
    """A row with its place: the path on the wire, its last name, and the attribute of the request's type; no attribute
    for a field that stands beside the type."""

    path: str
    field: str
    attribute: str
    parameter: Parameter


class Section:
    """The rows of one object of a request. `reported` are the names of the fields that only a backend of the same API
    has, `reasons` the reasons of those that are refused."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.reported: Final = tuple(row.field for row in rows if row.parameter.handling == "reported")
        refused = [row for row in rows if row.parameter.handling == "refused"]
        self.reasons: Final = {row.field: row.parameter.reason for row in refused}
        self._refused: Final = tuple((row.field, row.parameter.asks) for row in refused)
        self._taken: Final = frozenset(row.field for row in rows) - frozenset(self.reported)
        named = [row for row in rows if row.parameter.name]
        read = [row for row in named if row.attribute and row.parameter.read not in (APART, NEVER)]
        self._read: Final = tuple((row.parameter.name, _function(row.parameter.read)) for row in read)
        self._values: Final = _values(tuple(row.attribute for row in read))
        self._sent: Final = tuple(
            (row.parameter.name, row.field, row.parameter.write is SAMPLED, _sent_by(row.parameter))
            for row in named
            if row.parameter.write not in (APART, NEVER)
        )

    def read(self, fields: msgspec.Struct) -> dict[str, Json]:
        """Returns the values of a client's fields under their canonical names, without those that are absent, and
        without those that are read apart."""
        params: dict[str, Json] = {}
        for (name, function), value in zip(self._read, self._values(fields), strict=True):
            if value is not None and (function is None or (value := function(value)) is not None):
                params[name] = value
        return params

    def write(self, conversation: Conversation) -> dict[str, Json]:
        """Returns the fields of the wire for what the client asked for, without those that are written apart."""
        params, sampling = conversation.params, conversation.sampling
        fields: dict[str, Json] = {}
        for name, field, sampled, function in self._sent:
            value = getattr(sampling, name) if sampled else params.get(name)
            if value is not None and value != ():
                fields[field] = value if function is None else function(value)
        return fields

    def check(self, fields: JsonObject) -> None:
        """Raises Unsupported for a refused field that asks for something."""
        if self.reasons.keys().isdisjoint(fields):
            return
        for name, asks in self._refused:
            if asks(fields.get(name)):
                raise Unsupported(f"{name} is not supported: {self.reasons[name]}.", param=name)

    def asked(self, fields: JsonObject) -> list[str]:
        """Returns the names of the refused fields that ask for something."""
        if self.reasons.keys().isdisjoint(fields):
            return []
        return [name for name, asks in self._refused if asks(fields.get(name))]

    def unsent(self, fields: JsonObject) -> list[str]:
        """Returns the names of the fields that no backend of another API gets: those that are reported, and those that
        are not known."""
        if fields.keys() <= self._taken:
            return []
        return [name for name in fields if name not in self._taken]


def _values(attributes: tuple[str, ...]) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    """Returns a reader of the values of these attributes, in their order."""
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda fields: tuple([getattr(fields, name) for name in attributes])


def _sent_by(parameter: Parameter) -> Callable[[Any], Json] | None:
    # The one value of `Sampling` that is no value of JSON.
    return list if parameter.write is SAMPLED and parameter.name == "stop" else _function(parameter.write)


def _function(way: Way | Callable[[Any], Json]) -> Callable[[Any], Json] | None:
    return None if isinstance(way, Way) else way


class RequestTable:
    """The rows of a request's type and of the types inside it; `beside` are rows of fields that the type lacks, by
    their paths, which are written and not read.

    `sections` has the rows of each object by its path, "" for the request itself. `paths` are the places of canonical
    names, `supported` the canonical names that reach a backend, `names` all names of fields, and `holders` those whose
    value holds further rows. Raises TypeError for a field without a Parameter.
    """

    def __init__(self, kind: type[msgspec.Struct], beside: Mapping[str, Parameter] | None = None) -> None:
        self.kind: Final = kind
        others = [Row(path, path.rpartition(".")[2], "", row) for path, row in (beside or {}).items()]
        self.rows: Final = (*_rows(kind, ""), *others)
        held: dict[str, list[Row]] = {"": []}
        for row in self.rows:
            held.setdefault(row.path.rpartition(".")[0], []).append(row)
        self.sections: Final = {path: Section(tuple(rows)) for path, rows in held.items()}
        self.paths: Final = {row.parameter.name: row.path for row in self.rows if row.parameter.name}
        self.supported: Final = frozenset(_supported(self.rows))
        self.names: Final = frozenset(row.field for row in self.rows)
        self.holders: Final = frozenset(path.rpartition(".")[2] for path in held if path)

    def docs_rows(self) -> tuple[str, ...]:
        """Returns the rows of the table of fields in docs, which begins with the model and the messages."""
        listed = [row for row in self.rows if row.parameter.how is not None]
        listed.sort(key=lambda row: row.parameter.name not in _FIRST)
        return tuple([_docs_row(row.path, row.parameter) for row in listed])


def _docs_row(path: str, parameter: Parameter) -> str:
    return f"| `{path}` | {parameter.handling} | {parameter.how} |".replace("|  |", "| |")


def _supported(rows: tuple[Row, ...]) -> Iterator[str]:
    for row in rows:
        if row.parameter.name and row.parameter.name not in _PARTS and row.parameter.write != NEVER:
            yield from (row.parameter.name, *row.parameter.also)


def _rows(kind: type[msgspec.Struct], before: str) -> Iterator[Row]:
    hints = get_type_hints(kind, include_extras=True)
    for attribute, field in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        hint = hints[attribute]
        parameter = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Parameter)), None)
        if parameter is None:
            raise TypeError(f"{kind.__name__}.{attribute} has no Parameter")
        yield Row(f"{before}{field}", field, attribute, parameter)
        for inner in _structs(hint):
            yield from _rows(inner, f"{before}{field}.")


def _structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """Yields the struct that a field's type allows; none for a list of structs, whose items are read apart."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    for one in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            yield one


class Words(Generic[Value]):
    """The words of a wire for the values of the core.

    `values` has the value of each word, and `known` also the `silent` words, which say nothing. `words` has the word of
    each value: of several the first one, and for a value without a word of its own that of `nearest`.
    """

    def __init__(
        self, values: Mapping[str, Value], nearest: Mapping[Value, str] | None = None, silent: tuple[str, ...] = ()
    ) -> None:
        self.values: Final = values
        self.known: Final = (*silent, *values)
        own = {value: word for word, value in reversed([*values.items()])}
        self.words: Final[Mapping[Value, str]] = {**(nearest or {}), **own}


def event_fields(kind: type[msgspec.Struct], lacking: Mapping[str, tuple[str, ...]]) -> Mapping[str, frozenset[str]]:
    """Returns the fields that the objects of a stream may have, by the path of each object: those of the published type
    without the gateway's own, and those that it lacks. Objects that `lacking` does not name are not looked into."""
    published = dict(_published(kind, ""))
    return {path: frozenset((*published.get(path, ()), *more)) - {"dragoman"} for path, more in lacking.items()}


def _published(kind: type[msgspec.Struct], path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield path, kind.__struct_encode_fields__
    hints = get_type_hints(kind)
    for attribute, field in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        hint = hints[attribute]
        listed = "[]" if get_origin(hint) is list else ""
        for inner in _structs(get_args(hint)[0] if listed else hint):
            yield from _published(inner, f"{path}.{field}{listed}".lstrip("."))
