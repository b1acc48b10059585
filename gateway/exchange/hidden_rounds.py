"""Hides the calls of the gateway's own search for tools from the client, and makes the next round of a request of them.

A round is one request to the backend and its response. A response whose only calls are searches ends its round: the
next request holds the same conversation, what the model said, and the results of the searches. The client gets one
answer: the text of every round in order, and the sum of their tokens.

A search beside calls of the client's own functions is not answered, because the client has to run those first: its
answer ends with them, and the model can search again.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.capabilities.context_window import with_limit
from gateway.capabilities.held_tools import QUERY, SEARCH, HeldTools, line_of
from gateway.core.answer import Answer, AnswerCall, AnswerReader, AnswerReasoning, AnswerText
from gateway.core.conversation import (
    EMPTY,
    NO_REQUEST,
    Block,
    Conversation,
    Json,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningEnd,
    ResponseStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.tokens import estimate_text, prompt_tokens
from gateway.response.provider_state import STATEFUL, with_label
from gateway.tool_calls.tool_ranking import rank_tools

# What a call of the search consists of, beside the words that it searches for.
SEARCH_WORDS: Final = frozenset({SEARCH, QUERY})
# So many rounds of a request may end with a search.
MOST_HIDDEN: Final = 3
# What one search loads at most.
_MOST_FOUND: Final = 5
_NONE_SPENT: Final = UsageReport()
_UNANSWERED: Final = Notice(
    "backend",
    "dropped",
    "SEARCH_NOT_ANSWERED",
    "a search for tools beside calls of the client's tools is not answered; the model can search again",
)


class Rounds(msgspec.Struct, frozen=True):
    """What the rounds before this one leave to it: how many there were, the names that their searches have found, the
    tokens that they took, and the notices that are told already."""

    count: int = 0
    found: tuple[str, ...] = ()
    spent: UsageReport = _NONE_SPENT
    told: frozenset[Notice] = frozenset()

    @property
    def last(self) -> bool:
        """Returns whether this round may not end with a search."""
        return self.count == MOST_HIDDEN


FIRST_ROUND: Final = Rounds()


class SearchFilter:
    """Filters the events of one round before any other filter of the answer. `label` is that of the backend's state.

    `continues`: the round ended with a search, and another one has to follow. Its finish is then left out, and so are
    the counts behind it.
    """

    def __init__(self, held: HeldTools, search: ToolSpec, rounds: Rounds, label: str | None) -> None:
        self._held = held
        self._name = search.name
        self._rounds = rounds
        self._label = label
        self._reader = AnswerReader()
        self._hidden: set[int] = set()
        self._called = False
        self.continues = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events for the client. Raises InvalidToolCall for a search in a round behind the last one that
        may end with it."""
        self._reader.feed(events if self._label is None else [_labelled(event, self._label) for event in events])
        ids = {event.id for event in events if type(event) is ToolCallStart and event.name == self._name}
        shown: list[Event] = []
        # Fields belong to the next event.
        fields: list[Event] = []
        for event in events:
            if type(event) is PassthroughFields:
                fields.append(event)
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
                if event.name == self._name:
                    self._hidden.add(event.index)
                    return None
                self._called = True
                return event
            case ToolCallDelta() | ToolCallEnd():
                return None if event.index in self._hidden else event
            case Notice():
                return None if event.rule == "ENVELOPE_OPENED" and event.tool_call_id in ids else event
            case ResponseStart():
                return None if self._rounds.count else event
            case UsageReport():
                return None if self.continues else add_usage(self._rounds.spent, event)
            case Finish():
                return self._finish(event, shown)
            case _:
                return event

    def _finish(self, finish: Finish, shown: Sequence[Event]) -> Finish | None:
        if not self._hidden or self._called or finish.reason not in ("tool_calls", "stop"):
            return finish
        if self._rounds.last:
            error = InvalidToolCall(f"The model searched for tools in more than {MOST_HIDDEN} rounds of one request.")
            error.keep([*shown])
            raise error
        self.continues = True
        return None

    @property
    def unanswered(self) -> tuple[Notice, ...]:
        """Returns the notice of searches that the end of this answer leaves without a result; empty for none."""
        return (_UNANSWERED,) if self._hidden and not self.continues else ()

    def following(self, conversation: Conversation, sent: Conversation) -> tuple[Conversation, Rounds, list[ToolSpec]]:
        """Returns the conversation of the next round, what the rounds so far leave to it, and the functions that the
        searches of this round found. `conversation` is that of this round, `sent` what the backend got of it."""
        answer = self._reader.answer
        found: dict[str, ToolSpec] = {}
        results: list[Turn] = []
        last = self._rounds.count + 1 == MOST_HIDDEN
        for call in answer.calls:
            fitting = rank_tools(self._held.tools, query_of(call.arguments), _MOST_FOUND)
            found |= {tool.name: tool for tool in fitting}
            results.append(Turn("tool", (ToolResult(call.start.id, (Text(_result(fitting, last=last)),)),)))
        usage = answer.usage or _estimated(sent, answer)
        spent = add_usage(self._rounds.spent, usage)
        asked = msgspec.structs.replace(
            conversation,
            turns=(*conversation.turns, Turn("assistant", _blocks(answer)), *results),
            ends_with_result=True,
            request_id=_request_id(conversation.request_id, self._rounds.count + 1),
        )
        if (limit := conversation.sampling.max_tokens) is not None:
            asked = with_limit(asked, max(limit - (usage.completion_tokens or 0), 1))
        rounds = Rounds(self._rounds.count + 1, (*self._rounds.found, *found), spent, self._rounds.told)
        return asked, rounds, [*found.values()]

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


def query_of(arguments: str) -> str:
    """Returns the words of a search: its query, else every text in its arguments, which may be no valid JSON."""
    try:
        fields = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
    if not isinstance(fields, dict):
        return arguments
    query = fields.get(QUERY)
    return query if isinstance(query, str) else " ".join(value for value in fields.values() if isinstance(value, str))


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
        elif type(was) in (int, float) and type(now) in (int, float):
            added[name] = was + now  # type: ignore[operator]  # both are numbers
    return added


def _labelled(event: Event, label: str) -> Event:
    return with_label(event, label) if type(event) in STATEFUL else event


def _blocks(answer: Answer) -> tuple[Block, ...]:
    """Returns what the model said as the blocks of a turn."""
    blocks: list[Block] = []
    for part in answer.parts:
        if type(part) is AnswerText:
            blocks.append(Text(part.text))
        elif type(part) is AnswerReasoning:
            blocks.append(Reasoning(part.text, part.field))
        elif type(part) is ReasoningEnd:
            before = blocks[-1] if blocks else None
            if type(before) is Reasoning and not before.extra:
                blocks[-1] = msgspec.structs.replace(before, extra=part.extra)
            else:
                blocks.append(Reasoning("", extra=part.extra))
        elif type(part) is AnswerCall:
            blocks.append(_call(part))
    return tuple(blocks)


def _call(call: AnswerCall) -> ToolCall:
    # The arguments of a call in a history are an object; what the model wrote is searched for in any case.
    block = call.block
    try:
        is_object = isinstance(msgspec.json.decode(block.arguments), dict)
    except msgspec.DecodeError:
        is_object = False
    arguments = block.arguments if is_object else msgspec.json.encode({QUERY: query_of(block.arguments)}).decode()
    return msgspec.structs.replace(block, arguments=arguments, extra={**block.extra, **call.end} or EMPTY)


def _result(found: Sequence[ToolSpec], *, last: bool) -> str:
    """Returns the result of a search, with the schema of each function that it found."""
    said = ["These tools are loaded and can be called now:"] if found else ["No further tool fits. Use other words."]
    for tool in found:
        schema = msgspec.json.encode(tool.parameters).decode()
        said.append(f"{line_of(tool)}\n  parameters: {schema}")
    if last:
        said.append("This was the last search: go on with the tools that are loaded.")
    return "\n".join(said)


def _estimated(sent: Conversation, answer: Answer) -> UsageReport:
    """Returns the tokens of a round that the backend did not count."""
    said = [part.text for part in answer.parts if isinstance(part, AnswerText | AnswerReasoning)]
    said += [f"{call.start.name}{call.arguments}" for call in answer.calls]
    prompt, completion = prompt_tokens(sent), estimate_text("".join(said))
    return UsageReport(prompt, completion, prompt + completion, estimated=True)
