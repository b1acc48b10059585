"""Tells that a client does not get the state of an answer, because its dialect has no place for it."""

from collections.abc import Mapping
from typing import Final

from gateway.core.events import Event, ReasoningEnd, ToolCallEnd, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.provider_state import OPAQUE_FIELDS, STATE_FIELD
from gateway.core.state_rule import HeldState

STATE_NOT_SHOWN: Final = Notice(
    "backend",
    "dropped",
    "STATE_NOT_SHOWN",
    "the client's API has no place for state of this answer (a signature, encrypted reasoning), which is lost",
)
_NOWHERE: Final[frozenset[str]] = frozenset()


def tell_lost_state(events: list[Event], holds: HeldState) -> list[Event]:
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
