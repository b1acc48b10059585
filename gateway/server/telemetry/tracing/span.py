"""Defines the spans that are sent to a collector."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

Attribute: TypeAlias = "bool | int | float | str | tuple[str, ...]"
Attributes: TypeAlias = Mapping[str, Attribute]


class SpanEvent(msgspec.Struct, frozen=True):
    """An event within a span. Times are nanoseconds of the wall clock."""

    name: str
    at: int
    attributes: Attributes = {}


class Span(msgspec.Struct, frozen=True):
    """One unit of work. `parent_id` 0: the trace begins here; `remote`: the parent is the client's."""

    trace_id: int
    span_id: int
    parent_id: int
    remote: bool
    name: str
    kind: Literal["server", "client"]
    begun: int
    ended: int
    failed: bool
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
