"""Processes one request and its response, sans-IO: prepares, encodes, then decodes, unwraps and finishes."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from gateway.adapter import Adapter, HeadDecoder, Holding, TrailerDecoder
from gateway.capabilities.context_window import with_counts, with_room
from gateway.capabilities.offered_tools import fit_tools
from gateway.capabilities.prompted_demands import DemandCheck, find_demands, with_words
from gateway.capabilities.request_fields import (
    ONE_CALL,
    check_capabilities,
    check_rules,
    check_sequences,
    watched_sequences,
)
from gateway.capabilities.unsupported_content import dropped_fields, keep_to, replace_shown
from gateway.core.backend_status import names_model, names_resource, unknown_url
from gateway.core.conversation import ALL_CONTENT, Conversation, NamedTool
from gateway.core.errors import INCOMPLETE, BackendError, BackendProtocolError, BackendTruncated, InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.tokens import PromptSample, prompt_sample
from gateway.history.apply_profile import apply_profile
from gateway.history.bound_state import BoundState, Passes, keep_bound_state
from gateway.history.own_state import keep_own_state
from gateway.history.prepare import Substitution, prepare
from gateway.history.rejections import client_param, explained
from gateway.history.repair import in_client_order
from gateway.history.system_reminders import behind_others, keep_in_place
from gateway.providers.messages_rules import MessagesRules
from gateway.providers.request_rules import RequestRules, StopRules
from gateway.providers.tool_rules import NO_RULES
from gateway.response.argument_check import ArgumentCheck
from gateway.response.forced_call import ForcedCallCheck
from gateway.response.lost_state import tell_lost_state
from gateway.response.readable_content import ReadableContentFilter
from gateway.response.role_marker_filter import RoleMarkerFilter
from gateway.response.single_call import SingleCallFilter
from gateway.response.state_labels import STATEFUL, label_fields, with_label
from gateway.response.stop_sequences import StopMatcher
from gateway.response.usage_estimate import answer_tokens, estimate_usage
from gateway.tool_calls.unwrap import Unwrapper

COMPRESSED: Final = Notice(
    "backend",
    "seen",
    "RESPONSE_COMPRESSED",
    "the backend compressed its response although the request accepts only identity; it was decompressed",
)
# A longer part of a body without a message does not fit into a log line.
SHOWN_BODY: Final = 4096
EMPTY_ANSWER: Final = Notice(
    "backend", "seen", "EMPTY_ANSWER", "the backend finished without text, reasoning or a call", level="warning"
)
_OUTPUT: Final = frozenset({TextDelta, ReasoningDelta, ReasoningEnd, ToolCallStart})
# Only these may need a change before they are sent; the deltas of a response do not.
_MARKS: Final = frozenset({ToolCallStart, ToolCallEnd, ReasoningEnd, Finish, UsageReport})
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

    `notices` holds what preparing and encoding changed; later notices stand among the events. While `uncounted`, the
    client requires token counts which the backend has not reported; at the end `estimate` supplies them. Raises
    InvalidRequest (or Unsupported) from the constructor when the conversation cannot be sent.
    """

    def __init__(
        self,
        adapter: Adapter,
        conversation: Conversation,
        policy: Policy,
        summary: Substitution | None = None,
        label: str | None = None,
        window: int | None = None,
    ) -> None:
        capabilities = adapter.capabilities
        noticed = check_capabilities(conversation, capabilities)
        passes = conversation.dialect == capabilities.passthrough
        stops = conversation.sampling.stop
        governs = policy.profile.request_rules if capabilities.request_rules else None
        of_stops, refuses_one = (None, False) if governs is None else _checked(conversation, governs, policy)
        searches = bool(stops) and (of_stops is not None or not passes)
        watched = watched_sequences(stops, capabilities, of_stops) if searches else ()
        if watched:
            check_sequences(watched, conversation.paths)
        self.prepared = prepare(conversation, policy, summary)
        prepared = self.prepared.conversation
        repaired = self.prepared.notices
        anywhere = passes and capabilities.results == "anywhere"
        prepared, repaired = in_client_order(prepared, repaired) if anywhere else (prepared, repaired)
        state_notices: list[Notice] = []
        if label is not None:
            prepared, state_notices = keep_own_state(prepared, label, passes=passes)
        messages = None if capabilities.messages is None else policy.profile.messages or capabilities.messages
        prepared, bound_notices = (
            (prepared, []) if messages is None else _with_bound_state(prepared, self.prepared.passes, policy, messages)
        )
        self._check: DemandCheck | None = None
        prompts = capabilities.prompts
        if prompts and not passes and (demands := find_demands(prepared, prompts)):
            prepared, demand_notices = with_words(prepared, demands)
            noticed += demand_notices
            self._check = DemandCheck(demands, conversation.paths)
        kept: list[Notice] = []
        if not passes:
            prepared, kept = replace_shown(prepared, self.prepared.repaired.turns, capabilities, policy)
        in_place: list[Notice] = []
        # A text has a label for system text at any place.
        if capabilities.system == "first" or (policy.profile.system == "first" and not capabilities.text_only):
            prepared, in_place = _system_in_place(prepared, policy, messages, passes=passes)
        rules = policy.profile.tool_rules or capabilities.tool_rules
        if rules != NO_RULES and (prepared.tools or prepared.params.get("tools")):
            prepared, fitted = fit_tools(prepared, rules)
            noticed += fitted
        self.profiled = apply_profile(
            prepared,
            policy.profile,
            result_media=capabilities.result_media,
            call_id=capabilities.call_id,
            messages=capabilities.messages is not None,
        )
        self.conversation = self.profiled.conversation
        # A backend that receives every field receives every part.
        if not passes:
            self.conversation, replaced = keep_to(self.conversation, capabilities, policy)
            kept += replaced
        if window is not None:
            self.conversation, lowered = with_room(self.conversation, window)
            kept += lowered
        if watched and "stop" in capabilities.supported_params:
            self.conversation = _without_stops(self.conversation, watched)
        self.request = adapter.encode(self.conversation, policy)
        self.notices: list[Notice] = [
            # A backend of the client's dialect receives the fields as the client wrote them.
            *(conversation.notices and [one for one in conversation.notices if not passes or one.action == "moved"]),
            *noticed,
            *repaired,
            *state_notices,
            *bound_notices,
            *in_place,
            *self.profiled.notices,
            *kept,
            *self.request.notices,
        ]
        if not passes:
            self.notices += dropped_fields(self.conversation, capabilities)
        self._adapter = adapter
        self._decoder = adapter.decoder(self.conversation)
        # A check of a Protocol with isinstance would take as long as this whole constructor.
        self._holding = cast(Holding, self._decoder) if hasattr(self._decoder, "progress") else None
        self._renamed = bool(self.profiled.identifiers.call_ids or self.profiled.identifiers.names)
        self._policy = policy
        self._label = label
        self._window = window
        self._tools = conversation.tools
        self._unwrapper: Unwrapper | None = None
        self._arguments: ArgumentCheck | None = None
        self._guard = RoleMarkerFilter(policy.flatten) if capabilities.continues_text else None
        self._stop = StopMatcher(watched) if watched else None
        asks_one = passes or ONE_CALL in capabilities.supported_params
        one_call = refuses_one or not (conversation.parallel_tool_calls or asks_one)
        single = SingleCallFilter(conversation.paths.param(ONE_CALL)) if one_call and conversation.tools else None
        forced = None
        if conversation.tool_choice not in ("auto", "none") and (passes or "tool_choice" not in prompts):
            forced = _forced_call(self.prepared.conversation, policy)
        reads_all = passes or conversation.reads == ALL_CONTENT
        self._readable = None if reads_all else ReadableContentFilter(conversation.reads)
        # Of the state that the keeper asks for, it knows itself what it keeps.
        self._holds = None if passes or conversation.keeps is not None else conversation.holds
        filters = (self._guard, single, self._stop, self._check, forced)
        self._filters = [one.feed for one in filters if one is not None]
        self.uncounted = conversation.include_usage or not conversation.stream
        self._uncounted: list[Event] = []
        self._count_due = _UNCOUNTED
        self._answer_tokens = 0
        self._prompt: PromptSample | None = None
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
            error = self._adapter.decode_error(status, headers, body)
            # Of an HTML page, or an object without a message, the beginning says most.
            shown = body[:SHOWN_BODY].decode("utf-8", "replace")
            error.words = error.words or shown
            if error.code == "model_not_found":
                error = self._not_found(error, f"{shown} {error.words}")
            raise self._explained(error)
        self._check_media_type(headers)
        if hasattr(self._decoder, "head"):
            try:
                cast(HeadDecoder, self._decoder).head(headers)
            except BackendError as error:
                raise self._explained(error) from error.__cause__

    def _not_found(self, error: BackendError, said: str) -> BackendError:
        """Returns the error for a 404: of something that the request names, of the model, or of a wrong address."""
        if names_resource(said):
            error.code = "not_found"
            return error
        return error if names_model(said, self.conversation.model) else unknown_url(self.request.path, error.words)

    def _explained(self, error: BackendError) -> BackendError:
        with_counts(error, self.conversation, self._window)
        return explained(error, self.conversation)

    def _check_media_type(self, headers: Mapping[str, str]) -> None:
        content_type = headers.get("content-type", "")
        if content_type in self.request.accepts:
            return
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type and media_type not in self.request.accepts:
            expected = " or ".join(self.request.accepts)
            raise BackendProtocolError(
                f"The backend responded with another media type than {expected}.",
                code="upstream_invalid_response",
            )

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
        if self._silent and ({*map(type, events)} & _OUTPUT or _may_be_output(events)):
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
            events = self._decoded_end(trailers)
        except BackendError as error:
            return self._emit(error.take_events(), error)
        events = self._emit(events)
        if not self.finished:
            raise _truncated(events)
        return events

    def check_complete(self, events: list[Event]) -> None:
        """Raises BackendTruncated, which keeps these last events, for a response that is not complete."""
        if not self.finished:
            raise _truncated(events)

    def _decoded_end(self, trailers: Mapping[str, str]) -> list[Event]:
        if not trailers or not hasattr(self._decoder, "trailers"):
            return self._decoder.close()
        events = cast(TrailerDecoder, self._decoder).trailers(trailers)
        try:
            return events + self._decoder.close()
        except BackendError as error:
            error.keep(events)
            raise

    def end(self, events: list[Event]) -> list[Event]:
        """Ends the response: nothing more of it is read. Returns its last events with what is estimated of its tokens.
        Raises BackendTruncated for one that is not complete."""
        self.check_complete(events)
        return [*events, *self.estimate()] if self.uncounted else events

    def estimate(self) -> tuple[Event, ...]:
        """Returns the events after a complete response: nothing unless `uncounted`."""
        if not self.uncounted:
            return ()
        self._count_answer()
        prompt = self._prompt or prompt_sample(self.conversation)
        return estimate_usage(prompt.tokens, self._answer_tokens)

    def sample_prompt(self) -> None:
        """Look through the conversation for `estimate` now rather than at the end of the answer: for a conversation
        that is prepared in a thread because it is long."""
        self._prompt = prompt_sample(self.conversation)

    def _count_answer(self) -> None:
        self._answer_tokens += answer_tokens(self._uncounted)
        self._count_due = self._decoded + _UNCOUNTED
        self._uncounted = []

    def _emit(self, events: list[Event], fault: BackendError | None = None) -> list[Event]:
        """Returns the events for the client. Raises the fault that followed them."""
        if not events and fault is None:
            return events
        kinds = {*map(type, events)}
        self._silent = self._silent and not (kinds & _OUTPUT or _may_be_output(events))
        if self._silent:
            events = _told_empty(events)
        self._decoded += len(events)
        # Most responses make no call: the filters for calls are created with the first call.
        if self._unwrapper is None and ToolCallStart in kinds:
            self._unwrapper = Unwrapper(self._policy, frozenset([tool.name for tool in self._tools]))
            passes_text = self._policy.repair == "off"
            self._arguments = ArgumentCheck(self.conversation.object_arguments, passes_text=passes_text)
        try:
            if self._unwrapper is not None:
                events = self._unwrapper.feed(events)
        except BackendError as error:
            events, fault = _replaced(fault, error), error
        if self._renamed:
            events = self.profiled.identifiers.restore(events)
        try:
            if self._arguments is not None:
                events = self._arguments.feed(events)
        except BackendError as error:
            events, fault = _replaced(fault, error), error
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
        detail = "an error or a malformed event after the end of the response"
        return [*events, *fault.notices, Notice("backend", "ignored", "LATE_FAULT", detail, level="warning")]

    def _filter(self, events: list[Event], fault: BackendError | None) -> list[Event]:
        """Raises InvalidToolCall for a finish reason of calls without any call, and whatever a check raises."""
        for feed in self._filters:
            events = feed(events)
        if self._readable is not None:
            events = self._readable.feed(events)
        stateful = False
        for position, event in enumerate(events):
            if type(event) is ReasoningEnd or type(event) is ToolCallStart or type(event) is ToolCallEnd:
                stateful = stateful or bool(event.extra)
            if type(event) in STATEFUL and self._label is not None:
                events[position] = with_label(event, self._label)
            if type(event) is ToolCallEnd:
                self._called = True
            elif type(event) is UsageReport:
                if event.prompt_tokens is not None or event.completion_tokens is not None or event.total_tokens:
                    self.uncounted = False
            elif type(event) is Finish:
                if event.reason == "tool_calls" and not self._called:
                    # To call it a stop would report a lost call as a success.
                    lost = InvalidToolCall("The backend ended its response with tool calls, but sent none.")
                    lost.notices = () if fault is None else fault.notices
                    lost.keep(events[:position])
                    raise lost
                self.finished = True
                if (reason := self._reason(event.reason)) != event.reason:
                    events[position] = Finish(reason, event.raw, event.stop_sequence)
        return self._told_state(events) if stateful else events

    def _told_state(self, events: list[Event]) -> list[Event]:
        """Returns the events with a notice of state that the client does not get: one for each response."""
        if self._holds is None:
            return events
        told = tell_lost_state(events, self._holds)
        if told is not events:
            self._holds = None
        return told

    def _reason(self, reported: Reason) -> Reason:
        """Clients act on the finish reason, so it follows from the emitted events, not from the backend's reason."""
        if reported in ("stop", "tool_calls"):
            return "tool_calls" if self._called else "stop"
        return reported


def _truncated(events: list[Event]) -> BackendTruncated:
    truncated = BackendTruncated(INCOMPLETE)
    truncated.keep(events)
    return truncated


def _checked(conversation: Conversation, rules: RequestRules, policy: Policy) -> tuple[StopRules | None, bool]:
    """Returns what the provider accepts of stop sequences, and whether it refuses the wish for one call at a time.
    Raises InvalidRequest for a request that it would refuse."""
    model = policy.base_model or conversation.model
    check_rules(conversation, rules, model)
    of_stops = rules.stops_of(model) if conversation.sampling.stop else None
    return of_stops, not conversation.parallel_tool_calls and rules.refuse(ONE_CALL, model)


def _forced_call(conversation: Conversation, policy: Policy) -> ForcedCallCheck | None:
    """Returns the check for a client that requires a call of a function; None if another tool would do as well."""
    choice = conversation.tool_choice
    if isinstance(choice, NamedTool):
        required = choice.name in [tool.name for tool in conversation.tools]
    else:
        required = choice == "required" and bool(conversation.tools) and not conversation.other_tools
    param = conversation.paths.param("tool_choice")
    return ForcedCallCheck(choice, param, fails=policy.forced_tools == "error") if required else None


def _without_stops(conversation: Conversation, watched: Sequence[str]) -> Conversation:
    """Returns the conversation with the stop sequences that the backend applies itself."""
    stop = tuple([one for one in dict.fromkeys(conversation.sampling.stop) if one not in watched])
    sampling = msgspec.structs.replace(conversation.sampling, stop=stop)
    params = {name: value for name, value in conversation.params.items() if name != "stop"}
    return msgspec.structs.replace(
        conversation, sampling=sampling, params={**params, "stop": [*stop]} if stop else params
    )


def _may_be_output(events: list[Event]) -> bool:
    """Returns whether fields that only clients of the backend's API know may be output: a refusal, audio, the item of a
    tool that the backend runs."""
    passed = [event for event in events if type(event) is PassthroughFields and not event.frames]
    return any(one.scope == "event" or (one.scope == "delta" and any(one.fields.values())) for one in passed)


def _told_empty(events: list[Event]) -> list[Event]:
    """Returns the events of an answer without output, with a notice before its finish. A filter needs none, and calls
    that did not come are an error."""
    for at, event in enumerate(events):
        if type(event) is Finish and event.reason not in ("content_filter", "tool_calls"):
            return [*events[:at], EMPTY_ANSWER, *events[at:]]
    return events


def _replaced(fault: BackendError | None, error: BackendError) -> list[Event]:
    """Returns the events before an error which is reported instead of a fault. Events that the decoder attached to its
    own fault precede that fault, so that they may bring the other one."""
    error.notices = (*(fault.notices if fault is not None else ()), *error.notices)
    return error.take_events()


def _system_in_place(
    conversation: Conversation, policy: Policy, rules: MessagesRules | None, *, passes: bool
) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with system text only where the backend takes it. A client of the backend's own API says
    itself where that is, unless the model is known to refuse it."""
    model = None if rules is None else rules.of_model(policy.base_model or conversation.model)
    if passes and policy.profile.system != "first":
        refused = model is not None and model.system == "first" and behind_others(conversation.turns)
        return keep_in_place(conversation) if refused else (conversation, [])
    return keep_in_place(conversation, native=model is not None and model.system == "anywhere")


def _with_bound_state(
    conversation: Conversation, passes: Passes | None, policy: Policy, rules: MessagesRules
) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with thinking only behind what it was made behind, where the model binds it to that."""
    model = policy.base_model or conversation.model
    if passes is None or rules.thinking_of(model) != "bound":
        return conversation, []
    bound = BoundState(rules.provider, drops=rules.of_model(model) is not None)
    return keep_bound_state(conversation, passes, policy, bound)
