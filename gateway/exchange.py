"""One request and its response, sans-IO: prepare, encode, then decode, unwrap and finish whatever bytes come back."""

from collections.abc import Mapping
from typing import Final, cast

from gateway.adapter import Adapter, Holding
from gateway.capabilities import check_capabilities
from gateway.conversation.fit import fit
from gateway.conversation.prepare import prepare
from gateway.conversation.turn_guard import TurnGuard
from gateway.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.events import Event, Finish, Reason, ToolCallEnd, ToolCallStart
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.rejections import explained
from gateway.stop import StopMatcher
from gateway.tools.unwrap import Unwrapper
from gateway.types import Conversation

# What may have to be changed on its way; the pieces of an answer are not.
_MARKS: Final = frozenset({ToolCallStart, ToolCallEnd, Finish})


class Exchange:
    """Drive it like this: send `request`, check the head with `open`, `feed` every piece of the body until `done`
    or the end, then `close`. Every list of events obeys `gateway.grammar`.

    `notices` holds what preparing and encoding changed; later notices travel among the events.
    Raises InvalidRequest (or Unsupported) from the constructor when the conversation cannot be sent.
    """

    def __init__(self, adapter: Adapter, conversation: Conversation, policy: Policy) -> None:
        noticed = check_capabilities(conversation, adapter.capabilities, policy)
        self.prepared = prepare(conversation, policy)
        self.fitted = fit(self.prepared.conversation, policy.profile)
        self.conversation = self.fitted.conversation
        self.request = adapter.encode(self.conversation, policy)
        self.notices: list[Notice] = [
            *noticed,
            *self.prepared.notices,
            *self.fitted.notices,
            *self.request.notices,
        ]
        self._adapter = adapter
        self._decoder = adapter.decoder(self.conversation)
        # To ask a Protocol with isinstance would take as long as all of this.
        self._holding = cast(Holding, self._decoder) if hasattr(self._decoder, "progress") else None
        self._renamed = bool(self.fitted.idmap.call_ids or self.fitted.idmap.names)
        self._policy = policy
        self._tools = conversation.tools
        self._unwrapper: Unwrapper | None = None
        self._guard = TurnGuard(policy.flatten) if adapter.capabilities.continues else None
        emulates_stop = conversation.sampling.stop and not (
            adapter.capabilities.passthrough or "stop" in adapter.capabilities.honours
        )
        self._stop = StopMatcher(conversation.sampling.stop) if emulates_stop else None
        self._filters = self._guard is not None or self._stop is not None
        self._called = False
        self._decoded = 0
        self._over = False
        self.finished = False

    @property
    def done(self) -> bool:
        """Nothing more can come; the backend's connection may be closed."""
        stopped = (self._guard is not None and self._guard.stopped) or (self._stop is not None and self._stop.matched)
        return self._decoder.done or stopped or self._over

    @property
    def progress(self) -> int:
        """Grows with every part of the answer that has arrived, also with one that is held back for now."""
        return self._decoded + (0 if self._holding is None else self._holding.progress)

    def open(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Judge the head of the answer. `body` is needed only when the status is not 200. Header names are lower
        case. Raises BackendError for anything but a 200 of an expected media type."""
        if status != 200:
            error = self._adapter.decode_error(status, headers, body)
            raise explained(error, self.conversation.turns)
        said = headers.get("content-type", "")
        if said in self.request.accepts:
            return
        media_type = said.partition(";")[0].strip().lower()
        if media_type and media_type not in self.request.accepts:
            expected = " or ".join(self.request.accepts)
            raise BackendProtocolError(
                f"The backend answered with {media_type!r} instead of {expected}.",
                code="upstream_invalid_response",
            )

    def feed(self, data: bytes) -> list[Event]:
        """The next bytes of the body. Raises BackendError, with the events before it (`gateway.errors`)."""
        try:
            events = self._decoder.feed(data)
        except BackendError as error:
            return self._emit(error.take(), error)
        if not events:
            return events
        holds = self._unwrapper is not None and self._unwrapper.held
        if self._filters or holds or not _MARKS.isdisjoint(map(type, events)):
            return self._emit(events)
        self._decoded += len(events)
        return events

    def close(self) -> list[Event]:
        """The end of the body (not needed once `done`). Raises BackendError, BackendTruncated above all."""
        if self.done:
            return []
        try:
            events = self._decoder.close()
        except BackendError as error:
            return self._emit(error.take(), error)
        events = self._emit(events)
        if not self.finished:
            truncated = BackendTruncated("The backend's answer ended before it was complete.")
            truncated.keep(events)
            raise truncated
        return events

    def _emit(self, events: list[Event], fault: BackendError | None = None) -> list[Event]:
        """The events as the client shall see them. Raises the fault that came behind them."""
        if not events and fault is None:
            return events
        self._decoded += len(events)
        # Most answers make no call: what looks into calls is made with the first.
        if self._unwrapper is None and ToolCallStart in map(type, events):
            self._unwrapper = Unwrapper(self._policy, frozenset([tool.name for tool in self._tools]))
        try:
            if self._unwrapper is not None:
                events = self._unwrapper.feed(events)
        except BackendError as error:
            # What the decoder has told of the events before its own fault came first.
            error.notices = (*(fault.notices if fault is not None else ()), *error.notices)
            events, fault = error.take(), error
        if self._renamed:
            events = self.fitted.idmap.restore(events)
        events = self._filter(events)
        if fault is None:
            return events
        if not self.finished:
            fault.keep(events)
            raise fault
        # A complete answer stays complete.
        self._over = True
        detail = "an error or a malformed event after the end of the answer"
        return [*events, *fault.notices, Notice("backend", "ignored", "LATE_FAULT", detail, level="warning")]

    def _filter(self, events: list[Event]) -> list[Event]:
        if self._guard is not None:
            events = self._guard.feed(events)
        if self._stop is not None:
            events = self._stop.feed(events)
        for position, event in enumerate(events):
            if type(event) is ToolCallEnd:
                self._called = True
            elif type(event) is Finish:
                self.finished = True
                if (reason := self._reason(event.reason)) != event.reason:
                    events[position] = Finish(reason, event.raw)
        return events

    def _reason(self, said: Reason) -> Reason:
        """Clients act on the finish reason, so it follows from what was emitted, not from what the backend says."""
        if said in ("stop", "tool_calls"):
            return "tool_calls" if self._called else "stop"
        return said
