"""Lists all events of the laboratory. A new event is one row in one of these tables, and plays a fault of the demo
backends."""

from typing import Final

from gateway.demo.lab.broken_events import BROKEN_EVENTS
from gateway.demo.lab.call_events import CALL_EVENTS
from gateway.demo.lab.event import LabEvent
from gateway.demo.lab.form_events import FORM_EVENTS, SILENCE_EVENTS
from gateway.demo.lab.refusal_events import LASTING_EVENTS, REFUSAL_EVENTS

EVENTS: Final[tuple[LabEvent, ...]] = (
    *FORM_EVENTS,
    *SILENCE_EVENTS,
    *BROKEN_EVENTS,
    *REFUSAL_EVENTS,
    *LASTING_EVENTS,
    *CALL_EVENTS,
)
