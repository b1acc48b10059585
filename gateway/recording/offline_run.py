"""Runs a recorded request again, without a network: this version of the gateway against the recorded bytes.

The stages of a request are not recorded, they are made again by the same code from the recorded bytes. What comes from
outside is taken from the recording: what the backend sent, the ids and times of the answer, and the failures of
connections, limits and keys.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from gateway.adapter import Adapter, BackendRequest
from gateway.capabilities.refused_history import refused_history
from gateway.core.backend_status import redact_error
from gateway.core.conversation import NO_REQUEST, Conversation, Violation
from gateway.core.errors import BackendError, BackendTruncated, GatewayError, OwnWords, RequirementNotMet
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.requirements import broken
from gateway.dialect import AnswerHead, AnswerTimes, ClientRequest, Dialect
from gateway.dialects.document import read_document
from gateway.exchange import COMPRESSED, Exchange
from gateway.recording.lines import AnswerLine, BytesLine, CloseLine, Failure, HeadLine, RecordingError
from gateway.recording.offline_answer import NO_READ, OfflineAnswer
from gateway.recording.recording import Interaction
from gateway.recording.route import adapter_of, policy_of, request_head
from gateway.registry import load_dialect
from gateway.settings import Settings

_DISCONNECTED: Final = 499


class OfflineRun(msgspec.Struct, frozen=True):
    """The result of a run. `exchange` is None where nothing was sent. `events` holds those of each read, and of the end
    of the body; `writes` are the bytes that the client gets, without the head. `event_reads` and `write_reads` say for
    each of them which read of the backend's response it came of, from 0; -1: of none, but of the beginning or the end.
    `error` is what ended the request, and `external`: the recording, not this run, says so. `hidden` are the requests
    of the rounds behind the first one, in which a search for tools was answered. `compacts`: the answer is a compaction
    alone, which only a running gateway makes."""

    violations: tuple[Violation, ...] = ()
    conversation: Conversation | None = None
    exchange: Exchange | None = None
    notices: tuple[Notice, ...] = ()
    events: tuple[tuple[Event, ...], ...] = ()
    writes: tuple[bytes, ...] = ()
    event_reads: tuple[int, ...] = ()
    write_reads: tuple[int, ...] = ()
    status: int = 200
    error: GatewayError | None = None
    external: bool = False
    hidden: tuple[BackendRequest, ...] = ()
    compacts: bool = False

    @property
    def sent(self) -> BackendRequest | None:
        """The request to the backend."""
        return None if self.exchange is None else self.exchange.request

    @property
    def request_id(self) -> str:
        """The id that was made for the request to the backend."""
        return NO_REQUEST if self.exchange is None else self.exchange.conversation.request_id

    @property
    def client(self) -> bytes:
        """The body of the client's response."""
        return b"".join(self.writes)

    @property
    def code(self) -> str:
        """The code of the error, empty for none."""
        if self.status == _DISCONNECTED:
            return "client_gone"
        return "" if self.error is None else self.error.code or ""


def run_offline(
    interaction: Interaction, settings: Settings | None = None, redact: Callable[[str], str] = str
) -> OfflineRun:
    """Runs one recorded request. `redact` takes the gateway's secrets out of the error of a backend that quotes them,
    as the gateway did; recorded bytes without secrets need none. Raises RecordingError where the recording lacks its
    body, and for a route that cannot be used; SettingsError for an adapter that must be named in settings."""
    body = interaction.body
    if body is None:
        raise RecordingError(f"The body of the request {interaction.request.id} is not in the recording.")
    dialect = load_dialect(interaction.request.dialect)
    route = interaction.route
    adapter = None if route is None else adapter_of(route, settings)
    policy = Policy() if route is None else policy_of(route)
    return _Run(interaction, dialect, redact).play(body, adapter, policy)


class _RecordedLoss(msgspec.Struct, frozen=True):
    """The loss that has ended a recorded answer, because it was required that there is none."""

    requirement: str
    rule: str

    @classmethod
    def of(cls, interaction: Interaction) -> "_RecordedLoss | None":
        failure = None if interaction.end is None else interaction.end.failure
        if failure is None or failure.code != RequirementNotMet.code:
            return None
        return cls(str(failure.extra.get("requirement")), str(failure.extra.get("rule")))

    def is_in(self, event: Event) -> bool:
        """Returns whether an event is a notice of it."""
        return isinstance(event, Notice) and event.rule == self.rule and self.requirement in broken(event)


class _Run:
    """One run; `play` is called once."""

    def __init__(self, interaction: Interaction, dialect: Dialect, redact: Callable[[str], str]) -> None:
        self._interaction = interaction
        self._dialect = dialect
        self._redact = redact
        self._violations: tuple[Violation, ...] = ()
        self._conversation: Conversation | None = None
        self._exchange: Exchange | None = None
        self._notices: list[Notice] = []
        self._events: list[tuple[Event, ...]] = []
        self._event_reads: list[int] = []
        self._read = NO_READ
        self._answer: OfflineAnswer | None = None
        self._close: CloseLine | None = None
        self._compacts = False
        self._hidden: list[BackendRequest] = []
        self._lost = _RecordedLoss.of(interaction)

    def play(self, body: bytes, adapter: Adapter | None, policy: Policy) -> OfflineRun:
        try:
            request = self._decoded_request(body)
            self._begin(request, adapter, policy)
            if self._exchange is not None and self._answer is not None:
                self._relay(self._exchange, self._answer)
        except _ClientGone:
            return self._result(_DISCONNECTED)
        except _External as found:
            return self._failed(found.error, external=True)
        except _Unrunnable as error:
            raise RecordingError(str(error)) from error.__cause__
        except GatewayError as error:
            return self._failed(error)
        return self._result(200)

    def _decoded_request(self, body: bytes) -> ClientRequest:
        route = self._interaction.route
        try:
            return self._dialect.decode(read_document(body), request_head(self._interaction))
        except GatewayError as error:
            if route is None or not route.state:
                raise
            raise _Unrunnable(
                f"The request {self._interaction.request.id} continues one that the gateway had stored; it cannot be "
                "run without that."
            ) from error

    def _begin(self, request: ClientRequest, adapter: Adapter | None, policy: Policy) -> None:
        conversation = request.conversation
        route = self._interaction.route
        self._conversation = conversation
        declared = None if adapter is None else adapter.capabilities
        self._violations = refused_history(conversation, policy.profile, declared)
        if route is None or adapter is None or (self._is_gone and self._interaction.sent is None):
            raise self._external()
        if not request.generates:
            self._notices += conversation.notices
            self._answer = OfflineAnswer(self._dialect, request, self._head(), [*conversation.notices])
            self._answer.finish(())
            return
        if request.compacts is not None and self._is_answered_alone:
            self._compacts = True
            return
        if route.name and route.name != conversation.model:
            conversation = msgspec.structs.replace(conversation, model=route.name)
        if (sent := self._interaction.sent) is not None:
            conversation = msgspec.structs.replace(conversation, request_id=sent.request_id)
        window = route.context_length
        self._exchange = Exchange(adapter, conversation, policy, label=route.label or None, window=window)
        self._notices += self._exchange.notices
        self._answer = OfflineAnswer(self._dialect, request, self._head(), self._exchange.notices)

    def _head(self) -> AnswerHead:
        model = "" if self._conversation is None else self._conversation.model
        facts = self._interaction.answer or AnswerLine(self._interaction.x, "0" * 24, 0)
        clock = partial(next, iter(facts.clock), facts.created)
        request_id = self._interaction.request.id
        times = facts.times or AnswerTimes()
        return AnswerHead(
            facts.unique,
            facts.created,
            model,
            clock,
            self._interaction.explains,
            request_id,
            facts.stored,
            lambda: times,
        )

    def _relay(self, exchange: Exchange, answer: "OfflineAnswer") -> None:
        interaction = self._interaction
        head = interaction.head
        if interaction.gaps:
            raise self._external()
        if head is None:
            self._keep_alive(answer)
            raise self._external()
        reads = interaction.reads
        self._open(exchange, head, reads)
        if head.compressed:
            self._send(answer, [COMPRESSED])
        opened = False
        for step in interaction.steps:
            if isinstance(step, BytesLine) and step.quiet:
                answer.quiet()
            elif isinstance(step, HeadLine) and step.side == "backend":
                if opened:
                    exchange = self._following(exchange, answer, step)
                opened = True
            elif isinstance(step, CloseLine):
                self._close = step
            elif isinstance(step, BytesLine) and step.side == "backend" and not exchange.done:
                self._read = answer.read = self._read + 1
                self._send(answer, self._decoded(answer, exchange, step.data.content))
        self._read = answer.read = NO_READ
        if exchange.continues:
            # The next round had no response.
            self._end_round(exchange, answer)
            raise self._external()
        self._finish(exchange, answer)

    def _following(self, exchange: Exchange, answer: "OfflineAnswer", head: HeadLine) -> Exchange:
        """Returns the exchange of the next round, whose response has this head."""
        self._end_round(exchange, answer)
        if not exchange.continues:
            raise _Unrunnable("The recording has a further round, which this version does not make.")
        read = self._read
        self._read = answer.read = NO_READ
        following = exchange.following()
        self._hidden.append(following.request)
        self._send(answer, [*following.notices])
        self._close = None
        self._open(
            following, head, [line for one in self._interaction.rounds if one.head is head for line in one.reads]
        )
        if head.compressed:
            self._send(answer, [COMPRESSED])
        self._read = answer.read = read
        return following

    def _end_round(self, exchange: Exchange, answer: "OfflineAnswer") -> None:
        if not exchange.done and self._close is not None:
            self._send(answer, self._decoded(answer, exchange, None, self._close.trailers))
        if exchange.finished:
            self._send(answer, exchange.end([]))

    def _open(self, exchange: Exchange, head: HeadLine, reads: Sequence[BytesLine]) -> None:
        body = b""
        if head.status != 200:
            if self._is_gone:
                raise self._external()
            body = b"".join(read.data.content for read in reads)
        exchange.on_response_head(head.status, head.headers, body)

    def _keep_alive(self, answer: "OfflineAnswer") -> None:
        for write in self._interaction.writes:
            if write.quiet:
                answer.quiet()

    def _decoded(
        self, answer: "OfflineAnswer", exchange: Exchange, data: bytes | None, trailers: Mapping[str, str] | None = None
    ) -> list[Event]:
        try:
            return exchange.close(trailers or {}) if data is None else exchange.feed(data)
        except BackendError as error:
            rescued = error.take_events()
            if answer.begun or (error.opens and rescued):
                self._send(answer, rescued)
            elif rescued:
                self._keep(rescued)
            raise

    def _finish(self, exchange: Exchange, answer: "OfflineAnswer") -> None:
        close = self._close
        events: list[Event] = []
        if not exchange.done:
            if close is None and not exchange.finished:
                raise self._external()
            events = self._decoded(answer, exchange, None, close.trailers if close is not None else {})
        last = exchange.end(events)
        if self._is_lost_in(last):
            self._send(answer, last)
        self._record(last)
        answer.finish(last)

    @property
    def _is_answered_alone(self) -> bool:
        """Whether no backend was asked for the answer, which is no error."""
        end = self._interaction.end
        return self._interaction.sent is None and (end is None or end.failure is None)

    @property
    def _is_gone(self) -> bool:
        end = self._interaction.end
        return end is not None and end.cut == "client_gone"

    def _is_lost_in(self, events: list[Event]) -> bool:
        return self._lost is not None and any(map(self._lost.is_in, events))

    def _send(self, answer: "OfflineAnswer", events: list[Event]) -> None:
        """Sends events, and ends the answer behind the loss that has ended the recorded one: what the client, its key
        and its model required is not in the recording."""
        lost = self._lost if self._is_lost_in(events) else None
        if lost is not None:
            events = events[: next(at for at, event in enumerate(events, 1) if lost.is_in(event))]
        self._record(events)
        answer.send(events)
        if lost is not None:
            raise self._external()

    def _record(self, events: list[Event]) -> None:
        self._notices += (event for event in events if isinstance(event, Notice))
        self._keep(events)

    def _keep(self, events: list[Event]) -> None:
        self._events.append(tuple(events))
        self._event_reads.append(self._read)

    def _external(self) -> "_External | _ClientGone | GatewayError":
        """Returns the fault outside of the exchange that ended the request."""
        end = self._interaction.end
        if self._is_gone:
            return _ClientGone()
        if end is not None and end.failure is not None:
            return _External(error_of(end.failure))
        return BackendTruncated("The recording ends before the request did.")

    def _failed(self, error: GatewayError, external: bool = False) -> OfflineRun:
        if isinstance(error, BackendError) and not external:
            redact_error(error, self._redact)
        self._notices += error.notices
        if self._interaction.explains:
            before = () if self._exchange is None else self._exchange.notices
            error.extra = {**error.extra, "diagnostics": msgspec.to_builtins((*before, *error.notices))}
        if self._answer is not None and self._answer.begun:
            self._answer.fail(error)
            return self._result(200, error, external)
        encoded = self._dialect.encode_error(error, self._interaction.request.id)
        result = self._result(encoded.status, error, external)
        return msgspec.structs.replace(result, writes=(encoded.body,), write_reads=(NO_READ,))

    def _result(self, status: int, error: GatewayError | None = None, external: bool = False) -> OfflineRun:
        gone = self._is_gone and error is None
        answer = self._answer
        return OfflineRun(
            self._violations,
            self._conversation,
            self._exchange,
            tuple(self._notices),
            tuple(self._events),
            () if answer is None else tuple(answer.writes),
            tuple(self._event_reads),
            () if answer is None else tuple(answer.reads),
            _DISCONNECTED if gone else status,
            error,
            external,
            tuple(self._hidden),
            self._compacts,
        )


class _Unrunnable(Exception):
    """The recording is not enough for a run."""


class _ClientGone(Exception):
    """The client left, in whatever phase the request was."""


class _External(Exception):
    """What ended the request is not of this run."""

    def __init__(self, error: GatewayError) -> None:
        super().__init__(error.message)
        self.error = error


def error_of(failure: Failure) -> GatewayError:
    """Returns a recorded failure as the error that it was."""
    kind = BackendError if failure.upstream else GatewayError
    error = kind(
        failure.message,
        status=failure.status,
        kind=failure.kind,  # type: ignore[arg-type]  # that of a newer version is passed on
        param=failure.param,
        headers=failure.headers,
        extra=failure.extra,
    )
    error.code = failure.code
    error.own_words = None if failure.own_words is None else OwnWords(*failure.own_words)
    return error
