"""Sets the label of a backend before each state in its answer, by which that state finds its way back."""

from typing import Final

import msgspec

from gateway.core.conversation import JsonObject
from gateway.core.events import Event, PassthroughFields, ReasoningEnd, Scope, ToolCallEnd, ToolCallStart
from gateway.core.provider_state import with_states

# The events that may have state, and the objects of a backend's stream that may.
STATEFUL: Final = frozenset({ReasoningEnd, ToolCallStart, ToolCallEnd, PassthroughFields})
_SCOPES: Final[frozenset[Scope]] = frozenset({"delta", "event"})
# The fields of an event that hold an object with state: an item of OpenAI Responses, a block or a delta of Messages.
_HOLDERS: Final = ("item", "content_block", "delta")


def with_label(event: Event, label: str) -> Event:
    """Returns the event with the label before each state in it. A state is whole, in however many pieces it came."""
    match event:
        case ReasoningEnd() | ToolCallStart() | ToolCallEnd() if event.extra:
            return msgspec.structs.replace(event, extra=_labelled(event.extra, label))
        case PassthroughFields() if event.scope in _SCOPES:
            fields = _labelled(event.fields, label)
            for name in _HOLDERS:
                if isinstance(held := fields.get(name), dict):
                    fields = {**fields, name: dict(_labelled(held, label))}
            return PassthroughFields(event.scope, fields, event.frames, event.call)
        case _:
            return event


def label_fields(events: list[Event], label: str) -> None:
    """Sets the label in the fields among these events. Some backends send fields of the response with every chunk:
    those cost no call."""
    for position, event in enumerate(events):
        if type(event) is PassthroughFields and event.scope in _SCOPES:
            events[position] = with_label(event, label)


def _labelled(fields: JsonObject, label: str) -> JsonObject:
    return with_states(fields, lambda state: label + state)
