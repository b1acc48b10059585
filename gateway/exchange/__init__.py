"""Processes one request and its response, sans-IO: prepares, encodes, then decodes, unwraps and finishes."""

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from gateway.adapter import Adapter, TrailerDecoder, extensions_of, restricted_decoder
from gateway.capabilities.context_window import with_counts
from gateway.capabilities.held_tools import loaded_notice
from gateway.core.conversation import ALL_CONTENT, Conversation
from gateway.core.errors import BackendError, InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.malformed_event import LATE_FAULT
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.tokens import prompt_tokens
from gateway.exchange.filters import (
    EMPTY_ANSWER,
    OUTPUT,
    AnswerFilters,
    answer_filters,
    events_before,
    may_be_output,
    truncated,
    with_empty_notice,
)
from gateway.exchange.head import check_media_type, status_error
from gateway.exchange.hidden_rounds import FIRST_ROUND, HiddenCallFilter, Rounds
from gateway.exchange.plan import RequestPlan, plan_request
from gateway.history.prepare import Substitution
from gateway.history.rejections import client_param, explained
from gateway.response.argument_check import ArgumentCheck
from gateway.response.provider_state import STATEFUL, label_fields, with_label, with_lost_state_notice
from gateway.response.readable_content import ReadableContentFilter
from gateway.response.usage_estimate import answer_tokens, estimate_usage
from gateway.tool_calls.unwrap import Unwrapper

__all__ = ["COMPRESSED", "EMPTY_ANSWER", "Exchange"]

COMPRESSED: Final = Notice(
    "backend",
    "seen",
    "RESPONSE_COMPRESSED",
    "the backend compressed its response although the request accepts only identity; it was decompressed",
)
# Only these may need a change before they are sent; the deltas of a response do not.
_MARKS: Final = frozenset({ToolCallStart, ToolCallEnd, ReasoningEnd, Finish, UsageReport})
_TEXT: Final = {TextDelta}
_DELTAS: Final = frozenset({TextDelta, ReasoningDelta, ToolCallDelta})
_NO_TRAILERS: Final[Mapping[str, str]] = {}
# A response whose tokens may have to be estimated is estimated each time it has grown by this number of events.
_UNCOUNTED: Final = 512


class Exchange:
    """One request and its response. Every list of events obeys `gateway.core.grammar`.

    `summary` stands for the oldest turns of the conversation; None: all are sent. `label` is that of the backend's
    opaque state (`gateway.core.provider_state`); None: all state passes as it is, for an adapter without a backend.
    `window` is the context of the model in tokens; None: unknown.

    Send `request`, check the head with `on_response_head`, `feed` every piece of the body until `done` or its end, then
    call `close`.

    `received` is the conversation that was given. `notices` holds what preparing and encoding changed; later notices
    stand among the events. While `uncounted`, the client requires token counts which the backend has not reported; at
    the end `estimate` supplies them. Raises InvalidRequest (or Unsupported) from the constructor when the conversation
    cannot be sent.

    `continues`: the response ended with calls that the gateway answers, and that the client does not see; `following`
    is the exchange of the next round, whose events continue the same answer. `rounds` and `filters` are what earlier
    rounds leave to it.
    """

    # As a dictionary they would take a kilobyte of each running request.
    __slots__ = (
        "_adapter",
        "_answer_filters",
        "_answer_tokens",
        "_arguments",
        "_called",
        "_count_due",
        "_decoded",
        "_decoder",
        "_extensions",
        "_filters",
        "_guard",
        "_hidden",
        "_holding",
        "_holds",
        "_label",
        "_over",
        "_policy",
        "_readable",
        "_renamed",
        "_silent",
        "_stop",
        "_summary",
        "_tools",
        "_uncounted",
        "_unwrapper",
        "_window",
        "continues",
        "conversation",
        "finished",
        "notices",
        "prepared",
        "profiled",
        "received",
        "request",
        "uncounted",
    )

    def __init__(
        self,
        adapter: Adapter,
        conversation: Conversation,
        policy: Policy,
        summary: Substitution | None = None,
        label: str | None = None,
        window: int | None = None,
        rounds: Rounds = FIRST_ROUND,
        filters: AnswerFilters | None = None,
    ) -> None:
        plan = plan_request(adapter, conversation, policy, summary, label, window, rounds)
        self.received = conversation
        self.prepared = plan.prepared
        self.profiled = plan.profiled
        self.conversation = plan.conversation
        self.request = plan.request
        self.notices = plan.notices
        self._adapter = adapter
        read = plan.conversation if plan.held is None else _with_held(plan)
        self._decoder = restricted_decoder(adapter, read) if policy.disable_warp_tools else adapter.decoder(read)
        self._extensions = extensions_of(self._decoder)
        self._holding = self._extensions.holding
        self._renamed = bool(self.profiled.identifiers.call_ids or self.profiled.identifiers.names)
        self._policy = policy
        self._label = label
        self._window = window
        self._tools = conversation.tools
        self._summary = summary
        self._unwrapper: Unwrapper | None = None
        self._arguments: ArgumentCheck | None = None
        kept = answer_filters(plan, conversation, policy, guards=adapter.capabilities.continues_text)
        if filters is not None:
            # A sequence may begin in one round, and a call be required of all of them.
            kept = AnswerFilters(kept.guard, filters.stop, filters.feeds)
        self._answer_filters = kept
        self._guard = kept.guard
        self._stop = kept.stop
        self._filters = kept.feeds if kept.guard is None else [kept.guard.feed, *kept.feeds]
        self._hidden: HiddenCallFilter | None = None
        search = None if plan.held is None else plan.held.search
        if search is not None:
            self._tools = (*conversation.tools, search)
        # A client of the backend's own API gets the events of one response.
        removed = {} if plan.passes else plan.removed
        if search is not None or removed:
            self._hidden = HiddenCallFilter(plan.held, removed, rounds, conversation.paths, bound=plan.bound)
            self._filters = [*self._filters]
            self._filters.insert(len(self._filters) - len(kept.feeds), partial(self._without_hidden, self._hidden))
        self.continues = False
        reads_all = plan.passes or conversation.reads == ALL_CONTENT
        reads = conversation.reads
        # An API that has calls has reasoning, too.
        self._readable = None if reads_all else ReadableContentFilter(reads, declined="calls" in reads)
        # The state cache itself knows what it stores of the state that it asks for.
        self._holds = None if plan.passes or conversation.keeps is not None else conversation.holds
        self.uncounted = conversation.include_usage or not conversation.stream
        self._uncounted: list[Event] = []
        self._count_due = _UNCOUNTED
        self._answer_tokens = 0
        self._called = False
        self._silent = True
        self._decoded = 0
        self._over = False
        self.finished = False

    @property
    def done(self) -> bool:
        """Returns whether nothing more can follow; the backend's connection may be closed."""
        stopped = (self._guard is not None and self._guard.stopped) or (self._stop is not None and self._stop.matched)
        return self._decoder.done or stopped or self._over

    @property
    def progress(self) -> int:
        """Grows with every part of the response that has arrived, including parts that are held back."""
        return self._decoded + (0 if self._holding is None else self._holding.progress)

    def on_response_head(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Checks the head of the response.

        `body` is needed only when the status is not 200. Header names are lower case. Raises BackendError for anything
        but a 200 of an expected media type.
        """
        if status != 200:
            error = status_error(self._adapter, self.request, self.conversation.model, status, headers, body)
            raise self._explained(error)
        check_media_type(self.request, headers)
        if self._extensions.head is not None:
            try:
                self._extensions.head.head(headers)
            except BackendError as error:
                raise self._explained(error) from error.__cause__

    def _explained(self, error: BackendError) -> BackendError:
        with_counts(error, self.conversation, self._window)
        return explained(error, self.conversation)

    def feed(self, data: bytes) -> list[Event]:
        """Decodes the next bytes of the body. Raises BackendError, which keeps the events before it."""
        try:
            events = self._decoder.feed(data)
        except BackendError as error:
            return self._emit(error.take_events(), error)
        if not events:
            return events
        holds = self._unwrapper is not None and self._unwrapper.held
        if self._filters or holds or not _MARKS.isdisjoint(map(type, events)):
            return self._emit(events)
        if self._readable is not None and ReasoningDelta in map(type, events):
            return self._emit(events)
        if self._silent and ({*map(type, events)} & OUTPUT or may_be_output(events)):
            self._silent = False
        if self._label is not None and PassthroughFields in map(type, events):
            label_fields(events, self._label)
        if self._arguments is not None and self._arguments.open:
            events = self._arguments.feed(events)
        self._decoded += len(events)
        if self.uncounted:
            self._uncounted += events
            if self._decoded > self._count_due:
                self._count_answer()
        return events

    def close(self, trailers: Mapping[str, str] = _NO_TRAILERS) -> list[Event]:
        """Ends the body (not needed once `done`), with the trailers behind it, whose names are in lower case. Raises
        BackendError, usually BackendTruncated."""
        if self.done:
            return []
        try:
            if trailers and self._extensions.trailers is not None:
                events = self._decoded_trailers(self._extensions.trailers, trailers)
            else:
                events = self._decoder.close()
        except BackendError as error:
            return self._emit(error.take_events(), error)
        events = self._emit(events)
        if not self.finished:
            raise truncated(events)
        return events

    def check_complete(self, events: list[Event]) -> None:
        """Raises BackendTruncated, which keeps these last events, for a response that is not complete."""
        if not self.finished:
            raise truncated(events)

    def _decoded_trailers(self, decoder: TrailerDecoder, trailers: Mapping[str, str]) -> list[Event]:
        events = decoder.trailers(trailers)
        try:
            return events + self._decoder.close()
        except BackendError as error:
            error.keep(events)
            raise

    def end(self, events: list[Event]) -> list[Event]:
        """Ends the response: nothing more of it is read. Returns its last events with what is estimated of its tokens.
        Raises BackendTruncated for one that is not complete."""
        if not self.finished:
            raise truncated(events)
        if self._hidden is not None and not self.continues:
            events = [*self._hidden.unanswered, *events]
        return [*events, *self.estimate()] if self.uncounted and not self.continues else events

    def following(self) -> "Exchange":
        """Returns the exchange of the next round, once this one `continues` and is over. Its notices are those that no
        earlier round has told. Raises InvalidRequest like the constructor."""
        assert self._hidden is not None  # only hidden calls continue
        asked, rounds, found = self._hidden.following(self.received, self.conversation)
        told = rounds.told.union(self.notices)
        rounds = msgspec.structs.replace(rounds, told=told)
        args = (self._adapter, asked, self._policy, self._summary, self._label, self._window)
        following = Exchange(*args, rounds=rounds, filters=self._answer_filters)
        loaded = [] if found is None else [loaded_notice(found)]
        following.notices = [*loaded, *[notice for notice in following.notices if notice not in told]]
        return following

    def estimate(self) -> tuple[Event, ...]:
        """Returns the events after a complete response: nothing unless `uncounted`."""
        if not self.uncounted:
            return ()
        self._count_answer()
        notice, usage = estimate_usage(prompt_tokens(self.conversation), self._answer_tokens)
        return notice, usage if self._hidden is None else self._hidden.with_earlier(usage)

    def _count_answer(self) -> None:
        self._answer_tokens += answer_tokens(self._uncounted)
        self._count_due = self._decoded + _UNCOUNTED
        self._uncounted = []

    def _emit(self, events: list[Event], fault: BackendError | None = None) -> list[Event]:
        """Returns the events for the client. Raises the fault that followed them."""
        if not events and fault is None:
            return events
        kinds = {*map(type, events)}
        self._silent = self._silent and not (kinds & OUTPUT or may_be_output(events))
        if self._silent:
            events = with_empty_notice(events)
        self._decoded += len(events)
        # Most responses make no call: the filters for calls are created with the first call.
        if self._unwrapper is None and ToolCallStart in kinds:
            self._unwrapper = Unwrapper(self._policy, frozenset([tool.name for tool in self._tools]))
            passes_text = self._policy.repair == "off"
            hidden = frozenset[str]() if self._hidden is None else self._hidden.names
            self._arguments = ArgumentCheck(self.conversation.object_arguments, passes_text=passes_text, hidden=hidden)
        try:
            if self._unwrapper is not None:
                events = self._unwrapper.feed(events)
        except BackendError as error:
            events, fault = events_before(error, fault), error
        if self._renamed:
            events = self.profiled.identifiers.restore(events)
        try:
            if self._arguments is not None:
                events = self._arguments.feed(events)
        except BackendError as error:
            events, fault = events_before(error, fault), error
        events = self._filter(events, fault)
        if self.uncounted:
            self._uncounted += events
        if fault is None:
            return events
        if not self.finished:
            fault.keep(events)
            with_counts(fault, self.conversation, self._window)
            fault.param = client_param(fault.param, self.conversation)
            raise fault
        # A complete response stays complete.
        self._over = True
        return [*events, *fault.notices, LATE_FAULT]

    def _without_hidden(self, hidden: HiddenCallFilter, events: list[Event]) -> list[Event]:
        """Returns the events without the calls that the gateway answers. Raises InvalidToolCall for one too many."""
        events = hidden.feed(events)
        if hidden.continues and not self.finished:
            self.continues = self.finished = True
        return events

    def _filter(self, events: list[Event], fault: BackendError | None) -> list[Event]:
        """Raises InvalidToolCall for a finish reason of calls without any call, and whatever a check raises."""
        for feed in self._filters:
            events = feed(events)
        if self._readable is not None:
            events = self._readable.feed(events)
        if {*map(type, events)} == _TEXT:
            return events
        stateful = False
        for position, event in enumerate(events):
            # Nearly every event is one of these: a read with the end may hold the whole response.
            if type(event) in _DELTAS or (type(event) is PassthroughFields and event.scope == "response"):
                continue
            if type(event) is ReasoningEnd or type(event) is ToolCallStart or type(event) is ToolCallEnd:
                stateful = stateful or bool(event.extra)
            if type(event) in STATEFUL and self._label is not None:
                events[position] = with_label(event, self._label)
            if type(event) is ToolCallEnd:
                self._called = True
            elif type(event) is UsageReport:
                counted = event.prompt_tokens is not None or event.completion_tokens is not None or event.total_tokens
                self.uncounted = self.uncounted and not counted
            elif type(event) is Finish:
                events[position] = self._finish(event, events[:position], fault)
        return self._with_state_notice(events) if stateful else events

    def _finish(self, finish: Finish, before: list[Event], fault: BackendError | None) -> Finish:
        """Returns the finish for the client. Raises InvalidToolCall."""
        if finish.reason == "tool_calls" and not self._called:
            # To call it a stop would report a lost call as a success.
            lost = InvalidToolCall("The backend ended its response with tool calls, but sent none.")
            lost.notices = () if fault is None else fault.notices
            lost.keep(before)
            raise lost
        self.finished = True
        # The gateway may end the answer itself, at a sequence of the client.
        self.continues = False
        if finish.reason == "stop" and self._called:
            # Clients act on the reason, so it follows from the emitted events, not from the backend's reason.
            return Finish("tool_calls", finish.raw, finish.stop_sequence)
        return finish

    def _with_state_notice(self, events: list[Event]) -> list[Event]:
        """Returns the events with a notice of state that the client does not get: one for each response."""
        if self._holds is None:
            return events
        noticed = with_lost_state_notice(events, self._holds)
        if noticed is not events:
            self._holds = None
        return noticed


def _with_held(plan: RequestPlan) -> Conversation:
    """Returns the conversation as the answer is read: a call of a function that is held back is a call as well."""
    held = () if plan.held is None else plan.held.tools
    return msgspec.structs.replace(plan.conversation, tools=(*plan.conversation.tools, *held))
