"""Handles the opaque state of a provider in an answer: labels it, so that it finds its way back; tells where a client's
dialect has no place for it; removes what only the gateway asked for, to store it."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import ALL_CONTENT, Conversation, JsonObject
from gateway.core.events import Event, PassthroughFields, ReasoningEnd, Scope, ToolCallEnd, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.provider_state import OPAQUE_FIELDS, STATE_FIELD, STATE_FIELDS, with_states
from gateway.core.state_rule import HeldState
from gateway.response.readable_content import ReadableContentFilter

# The events that may have state, and the objects of a backend's stream that may.
STATEFUL: Final = frozenset({ReasoningEnd, ToolCallStart, ToolCallEnd, PassthroughFields})
_SCOPES: Final[frozenset[Scope]] = frozenset({"delta", "event"})
# The fields of an event that hold an object with state: an item of OpenAI Responses, a block or a delta of Messages.
_HOLDERS: Final = ("item", "content_block", "delta")
_MAY_HOLD_STATE: Final = frozenset({*STATE_FIELDS, *_HOLDERS})


def with_label(event: Event, label: str) -> Event:
    """Returns the event with the label before each state in it. A state is whole, in however many pieces it came."""
    # Compares classes: a match statement on an event of another class takes several times as long.
    if type(event) is PassthroughFields:
        if event.scope not in _SCOPES or _MAY_HOLD_STATE.isdisjoint(event.fields):
            return event
        fields = _labelled(event.fields, label)
        for name in _HOLDERS:
            if isinstance(held := fields.get(name), dict):
                fields = {**fields, name: dict(_labelled(held, label))}
        return PassthroughFields(event.scope, fields, event.frames, event.call)
    if (type(event) is ReasoningEnd or type(event) is ToolCallStart or type(event) is ToolCallEnd) and event.extra:
        return msgspec.structs.replace(event, extra=_labelled(event.extra, label))
    return event


def label_fields(events: list[Event], label: str) -> None:
    """Sets the label in the fields among these events. Some backends send fields of the response with every chunk:
    those cost no call."""
    for position, event in enumerate(events):
        if type(event) is PassthroughFields and event.scope in _SCOPES:
            events[position] = with_label(event, label)


def _labelled(fields: JsonObject, label: str) -> JsonObject:
    return with_states(fields, lambda state: label + state)


STATE_NOT_SHOWN: Final = Notice(
    "backend",
    "dropped",
    "STATE_NOT_SHOWN",
    "the client's API has no place for state of this answer (a signature, encrypted reasoning), which is lost",
)
STATE_BEHIND_SEARCH: Final = Notice(
    "backend",
    "dropped",
    "STATE_NOT_SHOWN",
    "signed reasoning behind a search for tools is not shown: its provider wants the search before it, which the "
    "client's history has not",
)
_NOWHERE: Final[frozenset[str]] = frozenset()


def with_lost_state_notice(events: list[Event], holds: HeldState) -> list[Event]:
    """Returns the events with a notice behind the first state for which a client that holds `holds` has no place; the
    same list where there is none."""
    for position, event in enumerate(events, 1):
        if is_lost(event, holds):
            return [*events[:position], STATE_NOT_SHOWN, *events[position:]]
    return events


def is_lost(event: Event, holds: HeldState) -> bool:
    """Returns whether an event has state of a provider for which a client that holds `holds` has no place.

    State is what has a label (`gateway.core.provider_state`). No dialect writes the state of the end of a call.
    """
    match event:
        case ReasoningEnd(extra):
            held = holds.reasoning
        case ToolCallStart(extra=extra):
            held = holds.calls
        case ToolCallEnd(extra=extra):
            held = _NOWHERE
        case _:
            return False
    states = extra.get(STATE_FIELD) if extra else None
    if held is None or not isinstance(states, Mapping):
        return False
    return any(
        [
            provider not in held and isinstance(state, Mapping) and any(map(state.get, OPAQUE_FIELDS))
            for provider, state in states.items()
        ]
    )


class StoredStateFilter:
    """Filters the events of one answer. `conversation` is the client's; `passes`: it speaks the backend's dialect, and
    gets every field and state as the backend sent it.
    """

    def __init__(self, conversation: Conversation, *, passes: bool) -> None:
        self._passes = passes
        reads = conversation.reads
        self._readable = (
            None
            if passes or "reasoning" in reads
            else ReadableContentFilter(reads | (ALL_CONTENT - {"reasoning"}), declined="calls" in reads)
        )

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns the events for the client."""
        if not self._passes and PassthroughFields in map(type, events):
            events = [event for event in events if type(event) is not PassthroughFields]
        return events if self._readable is None else self._readable.feed([*events])
