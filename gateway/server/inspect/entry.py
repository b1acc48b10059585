"""Defines what the ring knows of a request, while it is served and afterwards."""

from typing import TypeAlias

import msgspec

from gateway.server.inspect.capture import Capture
from gateway.server.inspect.cost import TokenCounts, token_counts
from gateway.server.inspect.summary import Contents, Summary
from gateway.server.telemetry.request_context import NO_ERROR, SHOWN, Outcome, RequestContext, shown


class LiveRequest(msgspec.Struct):
    """A request that is served. `started` is the time of its head and `changed` that of its latest change (monotonic
    clock); `capture` holds its contents, where somebody wants them, and `told` the facts that watchers were told last.
    When it has ended, `ended` is what stays of it."""

    context: RequestContext
    started: float
    changed: float
    rules: tuple[str, ...] = ()
    capture: Capture | None = None
    told: tuple[object, ...] | None = None
    ended: "EndedRequest | None" = None

    @property
    def facts(self) -> tuple[object, ...]:
        """What a summary is made of that may change, but for the time, which goes on by itself, and the size, which
        grows with every read. Summaries themselves would take ten times as long to compare."""
        context, capture = self.context, self.capture
        conversation = None if capture is None else capture.conversation
        changes = sum(context.changes.values())
        known = (context.key, context.model, context.backend, context.code, context.streamed)
        return (*known, changes, self.rules, context.usage, conversation)

    @property
    def tokens(self) -> TokenCounts | None:
        """The tokens, where they are known."""
        usage = self.context.usage
        return None if usage is None else token_counts(usage)

    @property
    def id(self) -> str:
        """The id of the request."""
        return self.context.id

    @property
    def dialect(self) -> str:
        """The name of the client's dialect."""
        return self.context.dialect

    @property
    def streamed(self) -> bool:
        """Whether the response is streamed."""
        return self.context.streamed

    @property
    def outcome(self) -> Outcome:
        """What is known of the outcome so far; it has no status yet."""
        context = self.context
        return Outcome(
            context.method,
            shown(context.path[:SHOWN]),
            context.key,
            shown(context.model[:SHOWN]),
            context.backend,
            0,
            context.code,
            context.ms,
            context.changed,
        )


class EndedRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request that has ended. `started` is the time of its head and `changed` that of its end (monotonic clock);
    `captured`: its contents were kept at first."""

    started: float
    id: str
    dialect: str
    changed: float
    streamed: bool
    captured: bool
    rules: tuple[str, ...]
    tokens: TokenCounts | None
    outcome: Outcome


KnownRequest: TypeAlias = LiveRequest | EndedRequest


class ContentsState(msgspec.Struct, frozen=True):
    """Whether the contents of a request can be had, the memory that they take, and the name of its conversation."""

    contents: Contents = "never_kept"
    bytes: int = 0
    conversation: str = ""


def ended_request(live: LiveRequest, outcome: Outcome) -> EndedRequest:
    """Returns what stays of a request that ends."""
    context = live.context
    return EndedRequest(
        live.started,
        context.id,
        context.dialect,
        live.changed,
        context.streamed,
        live.capture is not None,
        live.rules,
        context.usage and token_counts(context.usage),
        outcome,
    )


def error_code(outcome: Outcome) -> str:
    """Returns the code of the error that ended a request; empty: none."""
    return "" if outcome.code == NO_ERROR else outcome.code


def summary_of(known: KnownRequest, number: int, state: ContentsState, epoch_s: float, worker: int) -> Summary:
    """Returns what is known of a request now, without its cost. `number` becomes its `seq`, and `epoch_s` is the Unix
    time at which the monotonic clock began."""
    outcome, tokens = known.outcome, known.tokens or TokenCounts()
    return Summary(
        seq=number,
        id=known.id,
        began=round(known.started + epoch_s, 3),
        method=outcome.method,
        path=outcome.path,
        dialect=known.dialect,
        key=outcome.key,
        model=outcome.model,
        backend=outcome.backend,
        live=isinstance(known, LiveRequest),
        ms=outcome.ms,
        status=outcome.status,
        code=error_code(outcome),
        stream=known.streamed,
        changes=outcome.changes,
        rules=known.rules,
        prompt_tokens=tokens.prompt,
        completion_tokens=tokens.completion,
        contents=state.contents,
        bytes=state.bytes,
        worker=worker,
        conversation=state.conversation,
        tokens_estimated=tokens.estimated,
    )
