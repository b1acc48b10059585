"""Compares rendered templates with recorded messages: the proof that every proposed place has."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from google.protobuf.message import EncodeError

from adapters.proto.backend.field_values import is_map
from adapters.proto.backend.rendering import has_value
from adapters.proto.backend.request_template import RequestTemplate
from adapters.proto.backend.schema import Field
from adapters.proto.backend.template_names import FIELD, Scope
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest, OptionError


class Sample(msgspec.Struct, frozen=True):
    """The values of the names at one place in one exchange, and the recorded message there; None: there is none. (Any:
    its class exists only at run time.)"""

    values: Mapping[str, Any]
    message: Any


ABSENT: Final = object()
_NAMED: Final = frozenset(
    f"{FIELD}{name}"
    for name in (
        *("model", "messages", "tools", "tool_choice", "response_format", "stream", "stream_options", "stop"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", "seed"),
    )
)


def value_of(message: Any, field: Field) -> Any:
    """Returns the value of a field, or ABSENT: without presence, the default is absent."""
    if message is None:
        return ABSENT
    value = getattr(message, field.name)
    if field.is_repeated:
        return (dict(value) if is_map(field) else list(value)) or ABSENT
    if field.has_presence:
        return value if message.HasField(field.name) else ABSENT
    return ABSENT if value == field.default_value else value


def rendered(template: Json, field: Field, scope: Scope, samples: Sequence[Sample]) -> list[Any] | None:
    """Returns the value of the field with this template for each sample; None: the template cannot stand there, or a
    value of a sample does not fit the field."""
    try:
        compiled = RequestTemplate({field.name: template}, field.containing_type, scope)
        return [value_of(compiled.render(sample.values, []), field) for sample in samples]
    except (OptionError, InvalidRequest, EncodeError, KeyError):
        return None


def holds(template: Json, field: Field, scope: Scope, samples: Sequence[Sample]) -> bool:
    """Returns whether the template makes the recorded value of the field in every sample."""
    made = rendered(template, field, scope, samples)
    if made is None:
        return False
    return all(
        one is recorded or (one is not ABSENT and recorded is not ABSENT and one == recorded)
        for one, recorded in zip(made, [value_of(sample.message, field) for sample in samples], strict=True)
    )


def is_there(template: Json, field: Field, scope: Scope, samples: Sequence[Sample], present: Sequence[bool]) -> bool:
    """Returns whether the template gives the field a value in those samples that are `present`, and in no other one."""
    made = rendered(template, field, scope, samples)
    return made is not None and [one is not ABSENT for one in made] == [*present]


class HasValues(Protocol):
    """A sample of any kind: the values of the names."""

    @property
    def values(self) -> Mapping[str, Any]: ...


def client_fields(samples: Iterable[HasValues]) -> list[str]:
    """Returns the names for the client's own fields, without those that have a name or a choice of their own: their
    form is that of one API of clients."""
    names = {name for sample in samples for name in sample.values if name.startswith(FIELD)}
    return sorted(names - _NAMED)


def conditions(scope: Scope, samples: Sequence[Sample], present: Sequence[bool]) -> list[str]:
    """Returns the names that have a value in those samples that are `present`, and in no other one."""
    return [
        name
        for name in (*scope.kinds, *scope.items, *client_fields(samples))
        if [has_value(sample.values.get(name)) for sample in samples] == [*present]
    ]
