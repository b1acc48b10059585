"""Hides calls that only the gateway can answer from the client, and makes the next round of a request of them: calls of
its own search for tools, and of functions that the client's messages have removed.

A round is one request to the backend and its response. A response whose only calls are such calls ends its round: the
next request holds the same conversation, what the model said, and the results of the calls. The client gets one
answer: the text of every round in order, and the sum of their tokens.

Beside calls of the client's own functions nothing is answered, because the client has to run those first: the answer
ends with them, and the model can search again.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeGuard

import msgspec

from gateway.capabilities.context_window import with_limit
from gateway.capabilities.held_tools import HeldTools
from gateway.core.answer import Answer, AnswerReader, AnswerReasoning, AnswerText
from gateway.core.conversation import NO_REQUEST, Conversation, Json, JsonObject, ToolSpec, Turn
from gateway.core.errors import InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.core.provider_state import placed_state
from gateway.core.tokens import estimate_text, prompt_tokens
from gateway.exchange.hidden_turns import answer_turns
from gateway.response.provider_state import STATE_BEHIND_SEARCH
from gateway.response.removed_tools import removed_notice, removed_words
from gateway.response.usage_estimate import estimate_usage

# So many rounds of a request may end with calls that the gateway answers.
MOST_HIDDEN: Final = 3
_NONE_SPENT: Final = UsageReport()
_BESIDE_CALLS: Final = (
    "a search for tools beside calls of the client's tools is not answered; the model can search again"
)
_ENDED_EARLY: Final = "a search for tools is not answered, because the answer ended with it: {reason}"


class Rounds(msgspec.Struct, frozen=True):
    """What the rounds before this one leave to it: how many there were, the turns that they add to the conversation,
    the names that their searches have found, the tokens that they took, the notices that are told already, and
    whether they had text.

    The turns stand behind the conversation as it is sent: limits and repairs are for what the client sent."""

    count: int = 0
    turns: tuple[Turn, ...] = ()
    found: tuple[str, ...] = ()
    spent: UsageReport = _NONE_SPENT
    told: frozenset[Notice] = frozenset()
    spoke: bool = False

    @property
    def last(self) -> bool:
        """Returns whether this round may not end with a call that the gateway answers."""
        return self.count == MOST_HIDDEN


FIRST_ROUND: Final = Rounds()


class HiddenCallFilter:
    """Filters the events of one round before any other filter of the answer. `held` is what a search finds, `removed`
    has the functions that messages of the client have removed, with the index of each message. `bound`: the model takes
    signed reasoning back only behind what it was made behind, so that the client gets none that stands behind a hidden
    call.

    `continues`: the round ended with hidden calls alone, and another one has to follow. Its finish is then left out,
    and so are the counts behind it.
    """

    def __init__(
        self, held: HeldTools | None, removed: Mapping[str, int], rounds: Rounds, paths: FieldPaths, *, bound: bool
    ) -> None:
        self._held = held
        self._search = "" if held is None or held.search is None else held.search.name
        self._removed = removed
        self._rounds = rounds
        self._paths = paths
        self._bound = bound
        self._reader = AnswerReader()
        self._hidden: set[int] = set()
        self._searched = False
        self._refused: str | None = None
        self._called = False
        self._ended = ""
        # The length of the reasoning that has not ended.
        self._thought = 0
        self._spoke = rounds.spoke
        self.continues = False

    @property
    def names(self) -> frozenset[str]:
        """Returns the names of the functions whose calls are hidden."""
        return frozenset([*self._removed, self._search])

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events for the client. Raises InvalidToolCall for hidden calls alone in the round behind the last
        one that may end with them."""
        self._reader.feed(events)
        ids = {event.id for event in events if type(event) is ToolCallStart and event.name == self._search}
        shown: list[Event] = []
        # Fields belong to the next event.
        fields: list[Event] = []
        for event in events:
            if type(event) is PassthroughFields:
                fields.append(event)
                self._called = self._called or bool(event.call)
                continue
            kept = self._shown(event, ids, shown)
            if kept is not None:
                shown += [*[one for one in fields if self._is_new(one)], kept]
            if type(event) is not Notice:
                fields = []
        return [*shown, *[one for one in fields if self._is_new(one)]]

    def _is_new(self, fields: Event) -> bool:
        """Returns whether fields are none of a response that the client knows by an earlier round."""
        return not (self._rounds.count and type(fields) is PassthroughFields and fields.scope == "response")

    def _shown(self, event: Event, ids: set[str], shown: Sequence[Event]) -> Event | None:
        """Returns the event as the client gets it; None: it does not."""
        match event:
            case ToolCallStart():
                return self._start(event)
            case ToolCallDelta() | ToolCallEnd():
                return None if event.index in self._hidden else event
            case Notice():
                return None if event.rule == "ENVELOPE_OPENED" and event.tool_call_id in ids else event
            case ResponseStart():
                return None if self._rounds.count else event
            case UsageReport():
                # Of several reports each says what is known by then.
                return None if self.continues else add_usage(self._rounds.spent, self._reader.usage or event)
            case Finish():
                return self._finish(event, shown)
            case ReasoningEnd():
                return self._reasoning_end(event)
            case _:
                self._thought += len(event.text) if type(event) is ReasoningDelta else 0
                self._spoke = self._spoke or type(event) is TextDelta
                return event

    def _reasoning_end(self, end: ReasoningEnd) -> Event:
        """Returns the end of a piece of reasoning as it stands in the one message that the client gets."""
        length, self._thought = self._thought, 0
        if not end.extra:
            return end
        if self._bound and self._rounds.count:
            return STATE_BEHIND_SEARCH
        # The decoder of a round knows nothing of the pieces in the rounds before it.
        later = self._rounds.count or self._bound
        placed = placed_state(end.extra, length if later else None, len(self._hidden), behind_text=self._rounds.spoke)
        return ReasoningEnd(placed)

    def _start(self, start: ToolCallStart) -> Event | None:
        if start.name == self._search:
            self._searched = True
        elif start.name in self._removed:
            self._refused = start.name
        else:
            self._called = True
            return start
        self._hidden.add(start.index)
        if start.name == self._search:
            return None
        return removed_notice(start.name, self._removed[start.name], self._paths, start.id)

    def _finish(self, finish: Finish, shown: Sequence[Event]) -> Finish | None:
        self._ended = finish.raw or finish.reason
        if not self._hidden or self._called or finish.reason not in ("tool_calls", "stop"):
            return finish
        if self._rounds.last:
            error = InvalidToolCall(self._too_many())
            error.keep([*shown])
            raise error
        self.continues = True
        return None

    def _too_many(self) -> str:
        if self._refused is not None:
            return removed_words(self._refused, self._removed[self._refused], self._paths)
        return f"The model searched for tools in more than {MOST_HIDDEN} rounds of one request."

    @property
    def unanswered(self) -> tuple[Notice, ...]:
        """Returns the notice of searches that the end of this answer leaves without a result; empty for none."""
        if not self._searched or self.continues:
            return ()
        detail = _BESIDE_CALLS if self._called else _ENDED_EARLY.format(reason=self._ended)
        return (Notice("backend", "dropped", "SEARCH_NOT_ANSWERED", detail),)

    def following(
        self, conversation: Conversation, sent: Conversation
    ) -> tuple[Conversation, Rounds, list[ToolSpec] | None]:
        """Returns the conversation of the next round, what the rounds so far leave to it, and the functions that the
        searches of this round found; None: it had none. `conversation` is the client's, with the limit of tokens of
        this round; `sent` is what the backend got."""
        answer = self._reader.answer
        count = self._rounds.count + 1
        known = [*conversation.turns, *self._rounds.turns]
        turns, found = answer_turns(answer, self._held, self._removed, known, number=count, last=count == MOST_HIDDEN)
        usage = answer.usage or _estimated(sent, answer)
        asked = msgspec.structs.replace(conversation, request_id=_request_id(conversation.request_id, count))
        if (limit := conversation.sampling.max_tokens) is not None:
            asked = with_limit(asked, max(limit - (usage.completion_tokens or 0), 1))
        rounds = Rounds(
            count,
            (*self._rounds.turns, *turns),
            (*self._rounds.found, *[tool.name for tool in found]),
            add_usage(self._rounds.spent, usage),
            self._rounds.told,
            self._spoke,
        )
        return asked, rounds, found if self._searched else None

    def with_earlier(self, usage: UsageReport) -> UsageReport:
        """Returns the counts of this round with those of the rounds before it."""
        return add_usage(self._rounds.spent, usage)


def _request_id(first: str, count: int) -> str:
    """Returns the id of the request of a further round: another one for each, and the same whenever it is made."""
    if first == NO_REQUEST:
        return first
    digest = hashlib.sha256(f"{first}/{count}".encode()).hexdigest()
    # In the form of a random UUID (RFC 9562, section 5.4).
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def add_usage(earlier: UsageReport, later: UsageReport) -> UsageReport:
    """Returns the sum of two counts. One that only a later report holds is as it is there."""
    if earlier is _NONE_SPENT:
        return later
    return UsageReport(
        _added(earlier.prompt_tokens, later.prompt_tokens),
        _added(earlier.completion_tokens, later.completion_tokens),
        _added(earlier.total_tokens, later.total_tokens),
        earlier.estimated or later.estimated,
        _added_fields(earlier.extra, later.extra),
    )


def _added(earlier: int | None, later: int | None) -> int | None:
    # A report without a count leaves the one before as it is.
    return None if later is None else later + (earlier or 0)


def _added_fields(earlier: JsonObject, later: JsonObject) -> JsonObject:
    """Returns the fields of both; numbers below the same names are added, such as `cached_tokens`."""
    if not earlier or not later:
        return later or earlier
    added: dict[str, Json] = {**earlier, **later}
    for name in earlier.keys() & later.keys():
        was, now = earlier[name], later[name]
        if isinstance(was, dict) and isinstance(now, dict):
            added[name] = dict(_added_fields(was, now))
        elif _is_number(was) and _is_number(now):
            added[name] = was + now
    return added


def _is_number(value: Json) -> TypeGuard[int | float]:
    return type(value) is int or type(value) is float


def _estimated(sent: Conversation, answer: Answer) -> UsageReport:
    """Returns the tokens of a round that the backend did not count."""
    said = [part.text for part in answer.parts if isinstance(part, AnswerText | AnswerReasoning)]
    said += [f"{call.start.name}{call.arguments}" for call in answer.calls]
    _, usage = estimate_usage(prompt_tokens(sent), estimate_text("".join(said)))
    return usage
