"""Holds back the beginning of an answer that may still be given up: what no client can see yet."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.core.events import Event, PassthroughFields, ResponseStart, UsageReport
from gateway.core.notices import NO_CHANGE, Notice
from gateway.exchange.filters import may_be_output
from gateway.server.api.responders import Responder
from gateway.server.telemetry.request_context import RequestContext

# Events before the first one that a client can see; the fields of a backend of its own API may be output, too.
_BEFORE: Final = frozenset({Notice, ResponseStart, UsageReport, PassthroughFields})
# A backend that says nothing in so many events is not waited for.
_MOST: Final = 256


class HeldResponder:
    """The responder of one try. Nothing reaches the other responder before the answer has `begun`: with the first event
    that a client can see, or where it gets a `whole` answer, with the last one. `on_begin` is called then."""

    def __init__(
        self, responder: Responder, context: RequestContext, on_begin: Callable[[], None], *, whole: bool
    ) -> None:
        self._responder = responder
        self._context = context
        self._on_begin = on_begin
        self._whole = whole
        self._changes = context.changes
        self._held: list[Event] = []
        self.begun = False

    @property
    def opening(self) -> bool:
        """As that of the other responder."""
        return self._responder.opening

    async def send(self, events: Sequence[Event]) -> None:
        """Accepts events; more will follow."""
        if self.begun:
            await self._responder.send(events)
            return
        self._held += events
        if not self._whole and (_shows(events) or len(self._held) > _MOST):
            await self._responder.send(self._begin())
        else:
            self._count(events)

    async def finish(self, events: Sequence[Event]) -> None:
        """Accepts the last events."""
        await self._responder.finish(events if self.begun else [*self._begin(), *events])

    async def rescue(self, events: Sequence[Event], *, opens: bool) -> None:
        """Accepts the events that precede a fault: no other model is asked where they begin the answer (`opens`)."""
        if opens and not self.begun and not self._whole:
            await self._responder.send(self._begin())
        if self.begun:
            await self._responder.rescue(events, opens=opens)
        else:
            # Also where the head of the stream is out; the tokens among them count.
            self._held += events

    def drop(self) -> list[Event]:
        """Returns what was held, and gives it up."""
        held, self._held = self._held, []
        self._context.changes = self._changes
        return held

    def _begin(self) -> list[Event]:
        self.begun = True
        self._on_begin()
        # They count when they are sent.
        return self.drop()

    def _count(self, events: Sequence[Event]) -> None:
        """Counts the changes that the head of the response tells of: a keep-alive may open it."""
        changes = {**self._context.changes}
        for event in events:
            if type(event) is Notice and event.action not in NO_CHANGE:
                changes[event.stage] = changes.get(event.stage, 0) + 1
        self._context.changes = changes


def _shows(events: Sequence[Event]) -> bool:
    return not _BEFORE.issuperset(map(type, events)) or may_be_output([*events])
