"""Holds the facts of a request, while it is served and afterwards.

Many that have ended are packed at once, since a single one would find neither the code for that nor the memory in the
caches of the processor, and each would then lie among what later requests use (bench.inspector).
"""

import heapq
from collections import deque
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, TypeAlias

import msgspec

from gateway.core.notices import Notice
from gateway.core.session import Session
from gateway.diagnostics.prompt_cache.finding import Finding
from gateway.inspector.asked import Asked
from gateway.inspector.clients import LONGEST, client_name
from gateway.inspector.outcomes import outcome_of, phase_name
from gateway.inspector.summary import Contents, Summary, TokenCounts, cache_loss, token_counts
from gateway.server.inspect.cache_doctor import Examination
from gateway.server.inspect.capture import Capture
from gateway.server.telemetry.request_context import NO_ERROR, SHOWN, Outcome, RequestContext, shown


class LiveRequest(msgspec.Struct):
    """A request that is served. `started` is the time of its head and `changed` that of its latest change (monotonic
    clock); `capture` holds its contents, where somebody wants them, and `notices` are those of a request that has none;
    `examination` is that of its prompt, and `sent` are the facts that were last sent to watchers. When it has ended,
    `ended` are the facts that stay."""

    context: RequestContext
    started: float
    changed: float
    rules: tuple[str, ...] = ()
    capture: Capture | None = None
    sent: tuple[object, ...] | None = None
    ended: "EndedRequest | None" = None
    examination: Examination | None = None
    notices: list[Notice] = []

    @property
    def facts(self) -> tuple[object, ...]:
        """The facts of a summary that may change, but for the time, which goes on by itself, and the size, which
        grows with every read. Summaries themselves would take ten times as long to compare."""
        context, capture = self.context, self.capture
        said = None if capture is None else (capture.conversation, capture.session, capture.asked)
        changes = sum(context.changes.values())
        known = (context.key, context.model, context.backend, context.code, context.streamed, context.phase)
        return (*known, changes, self.rules, context.usage, said)

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
    def session(self) -> Session | None:
        """The session, where the contents are captured and it is known."""
        return None if self.capture is None else self.capture.session

    @property
    def user_agent(self) -> bytes:
        """What the client calls itself; empty: nothing."""
        headers = self.context.headers
        return headers[_USER_AGENT][:LONGEST] if _USER_AGENT in headers else b""

    @property
    def first_ms(self) -> float:
        """The time of the first events of the response; 0: there are none."""
        context = self.context
        return (context.answered - context.started) * 1000 if context.answered else 0.0

    @property
    def outcome_name(self) -> str:
        """What the request waits for, in words."""
        return phase_name(self.context.phase)

    @property
    def streamed(self) -> bool:
        """Whether the response is streamed."""
        return self.context.streamed

    @property
    def outcome(self) -> Outcome:
        """The outcome so far; it has no status yet."""
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
    `captured`: its contents were captured, so that its session is known. `user_agent` is what its client calls itself,
    and `first_ms` the time of the first events of the response (0: there are none)."""

    started: float
    id: str
    dialect: str
    changed: float
    streamed: bool
    captured: bool
    rules: tuple[str, ...]
    tokens: TokenCounts | None
    outcome: Outcome
    session: Session | None = None
    user_agent: bytes = b""
    first_ms: float = 0.0

    @property
    def outcome_name(self) -> str:
        """What became of the request, in words."""
        return outcome_of(self.outcome.status, error_code(self.outcome))


KnownRequest: TypeAlias = LiveRequest | EndedRequest
_USER_AGENT: Final = b"user-agent"


class ContentsState(msgspec.Struct, frozen=True):
    """Whether the contents of a request can be had, the memory that they take, the name of its conversation, and what
    it asks."""

    contents: Contents = "never_kept"
    bytes: int = 0
    conversation: str = ""
    asked: Asked = Asked()


def ended_request(live: LiveRequest, outcome: Outcome) -> EndedRequest:
    """Returns the facts that stay of a request that ends."""
    context = live.context
    headers = context.headers
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
        None if live.capture is None else live.capture.session,
        # Every request passes here: a function, and `round`, would be calls.
        headers[_USER_AGENT][:LONGEST] if _USER_AGENT in headers else b"",
        (context.answered - context.started) * 10_000 // 1 / 10 if context.answered else 0.0,
    )


def error_code(outcome: Outcome) -> str:
    """Returns the code of the error that ended a request; empty: none."""
    return "" if outcome.code == NO_ERROR else outcome.code


def summary_of(
    known: KnownRequest,
    number: int,
    state: ContentsState,
    epoch_s: float,
    worker: int,
    finding: Finding | None = None,
    secrets: tuple[str, ...] = (),
) -> Summary:
    """Returns the present summary of a request, without costs. `number` becomes its `seq`, and `epoch_s` is the Unix
    time at which the monotonic clock began; `secrets` are values that are no names of a client."""
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
        session=known.session,
        tokens_estimated=tokens.estimated,
        cache=None if finding is None else cache_loss(finding),
        client=client_name(known.user_agent, secrets) if known.user_agent else "",
        first_ms=round(known.first_ms, 1) or None,
        outcome=known.outcome_name,
        asked=state.asked,
    )


# At most so many are packed at once.
_AT_ONCE: Final = 64
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[EndedRequest])


class _Packed(msgspec.Struct, frozen=True, gc=False):
    """Requests as JSON, whose numbers may have any size. `latest` is the time at which the last of them began."""

    latest: float
    requests: bytes


class EndedRequests:
    """The `most` requests that ended last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._at_once = min(_AT_ONCE, most)
        # In the order of their end. The oldest of those that are packed may be more than are wanted.
        self._packed: deque[_Packed] = deque()
        self._unpacked: list[EndedRequest] = []

    def __len__(self) -> int:
        return min(self._most, len(self._packed) * self._at_once + len(self._unpacked))

    def add(self, ended: EndedRequest) -> None:
        """Takes a request that has ended."""
        self._unpacked.append(ended)
        if len(self._unpacked) == self._at_once:
            self._pack()

    def _pack(self) -> None:
        latest = max(one.started for one in self._unpacked)
        self._packed.append(_Packed(latest, _ENCODER.encode(self._unpacked)))
        self._unpacked.clear()
        if (len(self._packed) - 1) * self._at_once >= self._most:
            self._packed.popleft()

    def __iter__(self) -> Iterator[EndedRequest]:
        """Yields the requests, those that began last first, and reads no more of them than that takes. Those that end
        meanwhile are left out."""
        pieces = [*self._packed]
        # When the last request of a piece or of an older one began.
        latest = [*accumulate((piece.latest for piece in pieces), max)]
        read = [(-one.started, one) for one in self._wanted(self._unpacked, 0)]
        heapq.heapify(read)
        newer = len(self._unpacked)
        while pieces:
            while read and -read[0][0] > latest[len(pieces) - 1]:
                yield heapq.heappop(read)[1]
            for one in self._wanted(_DECODER.decode(pieces.pop().requests), newer):
                heapq.heappush(read, (-one.started, one))
            newer += self._at_once
        while read:
            yield heapq.heappop(read)[1]

    def with_id(self, request_id: str) -> EndedRequest | None:
        """Returns the request of this id that began last, or None."""
        written = msgspec.json.encode(request_id)
        found = self._wanted(self._unpacked, 0)
        newer = len(self._unpacked)
        for piece in reversed(self._packed):
            if written in piece.requests:
                found += self._wanted(_DECODER.decode(piece.requests), newer)
            newer += self._at_once
        return max((one for one in found if one.id == request_id), key=lambda one: one.started, default=None)

    def _wanted(self, requests: list[EndedRequest], newer: int) -> list[EndedRequest]:
        """Returns those of a piece that are among the last, so many having ended after them."""
        return requests[max(0, len(requests) + newer - self._most) :]

    def clear(self) -> None:
        """Removes all."""
        self._packed.clear()
        self._unpacked.clear()
