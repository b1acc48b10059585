"""Makes the filters that the events of an answer pass, from the plan of its request; and what they and the exchange say
of an answer: where it has output, and what stands before an error."""

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from gateway.capabilities.prompted_demands import DemandCheck
from gateway.capabilities.request_fields import ONE_CALL
from gateway.core.conversation import Conversation
from gateway.core.errors import INCOMPLETE, BackendError, BackendTruncated
from gateway.core.events import Event, Finish, PassthroughFields, ReasoningDelta, ReasoningEnd, TextDelta, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange.plan import RequestPlan
from gateway.response.removed_tools import RemovedToolFilter
from gateway.response.role_marker_filter import RoleMarkerFilter
from gateway.response.stop_sequences import StopMatcher
from gateway.response.tool_choice import ForcedCallCheck, SingleCallFilter

EMPTY_ANSWER: Final = Notice(
    "backend", "seen", "EMPTY_ANSWER", "the backend finished without text, reasoning or a call", level="warning"
)
OUTPUT: Final = frozenset({TextDelta, ReasoningDelta, ReasoningEnd, ToolCallStart})

Filter: TypeAlias = Callable[[list[Event]], list[Event]]


class AnswerFilters(msgspec.Struct, frozen=True):
    """`guard` comes first, a new one for each round of a request; `feeds` are the others in their order, for all of its
    rounds. Two may end the answer: `guard` before a turn that the model invents, `stop` at a stop sequence; None:
    neither applies."""

    guard: RoleMarkerFilter | None
    stop: StopMatcher | None
    feeds: list[Filter]


def answer_filters(plan: RequestPlan, conversation: Conversation, policy: Policy, *, guards: bool) -> AnswerFilters:
    """Returns the filters of one answer. `conversation` is the client's; `guards`: the model continues a text, so that
    it may write turns which are not its own."""
    guard = RoleMarkerFilter(policy.flatten) if guards else None
    stop = StopMatcher(plan.watched) if plan.watched else None
    feeds: list[Filter] = []
    # Any other backend is told so in a further round.
    if plan.removed and plan.passes:
        feeds.append(RemovedToolFilter(plan.removed, conversation.paths).feed)
    if plan.one_call:
        feeds.append(SingleCallFilter(conversation.paths.param(ONE_CALL)).feed)
    if stop is not None:
        feeds.append(stop.feed)
    if plan.demands is not None:
        feeds.append(DemandCheck(plan.demands, conversation.paths).feed)
    if plan.required is not None:
        param = conversation.paths.param("tool_choice")
        feeds.append(ForcedCallCheck(plan.required, param, fails=policy.forced_tools == "error").feed)
    return AnswerFilters(guard, stop, feeds)


def may_be_output(events: list[Event]) -> bool:
    """Returns whether fields that only clients of the backend's API know may be output: a refusal, audio, the item of a
    tool that the backend runs."""
    passed = [event for event in events if type(event) is PassthroughFields and not event.frames]
    return any(one.scope == "event" or (one.scope == "delta" and any(one.fields.values())) for one in passed)


def with_empty_notice(events: list[Event]) -> list[Event]:
    """Returns the events of an answer without output, with a notice before its finish. A filter needs none, and calls
    that did not come are an error."""
    for at, event in enumerate(events):
        if type(event) is Finish and event.reason not in ("content_filter", "tool_calls"):
            return [*events[:at], EMPTY_ANSWER, *events[at:]]
    return events


def truncated(events: list[Event]) -> BackendTruncated:
    """Returns the error for an answer that ended behind these events, before its finish."""
    error = BackendTruncated(INCOMPLETE)
    error.keep(events)
    return error


def events_before(error: BackendError, fault: BackendError | None) -> list[Event]:
    """Returns the events before an error which is reported instead of a fault. Events that the decoder attached to its
    own fault precede that fault, so that they may bring the other one."""
    error.notices = (*(fault.notices if fault is not None else ()), *error.notices)
    return error.take_events()
