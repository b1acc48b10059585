"""Keeps references to what one request is made of while it is served, with its times.

A request has a capture only while somebody wants its contents: then a `CaptureObserver` joins its observers, and
replaces the writer of the client and the response of the backend by ones that keep what goes through them
(`gateway.server.inspect.capture_observer`). Else it costs no call.
"""

import marshal
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Final

import msgspec
from msgspec.structs import replace

from gateway.core.conversation import NO_REQUEST
from gateway.core.errors import BackendTimeout, BackendUnavailable, GatewayError
from gateway.core.notices import READ_RULES, Notice
from gateway.core.session import ReadSession, Session, read_session
from gateway.dialect import AnswerHead, AnswerTimes, Dialect, RequestHead
from gateway.exchange import Exchange
from gateway.inspector.asked import Asked, asked_of, client_turns
from gateway.inspector.summary import TokenCounts, conversation_name, conversation_session, first_user_turn
from gateway.recording.beginning import whole_words
from gateway.recording.heads import request_headers, request_path
from gateway.recording.lines import (
    Absence,
    AnswerLine,
    Beginning,
    Cut,
    EndLine,
    Failure,
    Marks,
    NoticeLine,
    RequestLine,
    RouteLine,
    SentLine,
    Tokens,
    TryLine,
    data_of,
)
from gateway.recording.recording import Interaction
from gateway.recording.remake import failure_of
from gateway.recording.route import policy_fields
from gateway.server.inspect.captured_bytes import BackendHead, CapturedBytes, ClientHead, Close, Piece, milliseconds
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings


class Sent(msgspec.Struct, frozen=True, array_like=True):
    """The part of the request to the backend that a recording holds; `body` None: it is larger than the bound."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None
    http2: bool
    request_id: str = NO_REQUEST


# No Struct: it is never packed, and what it refers to lives as long as the settings.
class Route:
    """The route of a request: the client's name of the model, its entry in the settings, and the backend."""

    __slots__ = ("backend", "entry", "model")

    def __init__(self, model: str, entry: ModelSettings, backend: Backend) -> None:
        self.model = model
        self.entry = entry
        self.backend = backend


class Capture(msgspec.Struct, array_like=True):
    """One request. While it is served, little more than references and times are taken; what a viewer or a recording
    needs is made when it is asked for. `captured` holds what goes over both wires; a body that exceeds its bound is
    not. `secrets` are the client's own in the head of its request, and those of its backend while it was served, which
    may be others by now; `conversation` is a name that is equal for requests whose first user messages are equal, and
    empty while there is none. `session` is the one that the client names, and else that of the conversation; `asked` is
    what it asks."""

    id: str
    method: str
    captured: CapturedBytes
    secrets: tuple[str, ...] = ()
    conversation: str = ""
    route: Route | None = None
    session: Session | None = None
    asked: Asked | None = None
    _began: float = msgspec.field(default_factory=monotonic)
    _dialect: str = ""
    _head: RequestHead = RequestHead("")
    _body: bytes | None = None
    # Why there is none.
    _absent: Absence = "never_kept"
    _sent: Sent | None = None
    _answer: AnswerLine | None = None
    _clock: list[int] = []
    _notices: list[tuple[float, Notice]] = []
    _failure: Failure | None = None
    # The notices and the failure, when everything is packed.
    _packed: bytes = b""
    _cut: Cut | None = None
    _tries: list[TryLine] = []
    # The time of each field of Marks.
    _marks: dict[str, float] = {}
    _quiet: bytes = b""
    _state: bool = False
    _over: bool = False
    # The size of the client's body of which only the beginning is here; 0: it is whole, or not here.
    _whole_size: int = 0

    @property
    def size(self) -> int:
        """The memory that the contents take, in bytes."""
        return sum(map(len, self._bodies)) + self.captured.size

    @property
    def _bodies(self) -> list[bytes]:
        """The bodies of both requests; empty: it is not here."""
        return [self._body or b"", (self._sent and self._sent.body) or b""]

    def begin(self, dialect: Dialect, head: RequestHead) -> None:
        """Takes the head of the request."""
        self._dialect = dialect.name
        self._head = RequestHead(head.path, head.query, dict(head.headers))
        self._add_secrets(place.read(head).decode("utf-8", "replace") for place in dialect.key_places)

    def read_request(self, body: bytes, first: int | None = None) -> ReadSession:
        """Takes the body of the client's request; `first`: of a larger one its first bytes, so many at most. Returns
        the session that the client names in its head or in it."""
        read = read_session(self._head.headers, body, self.secrets)
        self.session = read.session
        if len(body) <= (self.captured.most if first is None else first):
            self._body = body
        else:
            self._absent = "over_the_cap"
            if first is not None:
                self._body, self._whole_size = whole_words(body[:first], to_end=False), len(body)
        self._marks["read"] = monotonic()
        return read

    def skip_body(self, size: int) -> None:
        """Takes the size of a client's body that is not kept."""
        self._body, self._whole_size, self._absent = b"", size, "never_kept"

    def choose_route(self, model: str, route: ModelSettings, backend: Backend) -> None:
        """Takes the route, before anything is prepared for it."""
        self.route = Route(model, route, backend)
        self._add_secrets(backend.secrets)

    def prepare(self, exchange: Exchange, most: int | None = None, secrets: Sequence[str] = ()) -> None:
        """Takes the request to the backend, with its body if that has at most so many bytes. `secrets` are the
        gateway's own, which nothing shows."""
        sent = exchange.request
        body = sent.body if len(sent.body) <= (self.captured.most if most is None else most) else None
        request_id = exchange.conversation.request_id
        self._sent = Sent(sent.method, sent.path, dict(sent.headers), body, sent.http2, request_id)
        self._state = _has_state(exchange)
        turns = exchange.prepared.repaired.turns
        self.conversation = conversation_name(first_user_turn(turns))
        self.session = self.session or conversation_session(turns)
        self.asked = asked_of(exchange.conversation.turns, (*secrets, *self.secrets))
        self._marks["prepared"] = monotonic()

    def send(self) -> None:
        """Records that the request has been written to the backend."""
        if "first" not in self._marks:
            # A later round of the same request is no part of its times.
            self._marks["connected"] = monotonic()

    def receive_head(self, status: int, headers: Mapping[str, str], compressed: bool) -> None:
        """Takes the head of the backend's response."""
        now = monotonic()
        if "first" not in self._marks:
            self._marks["head"] = now
        self.captured.add(BackendHead(now, status, dict(headers), compressed))

    def read(self, data: bytes) -> None:
        """Takes a read of the backend's response."""
        if not self._over and data:
            marks, now = self._marks, monotonic()
            marks.setdefault("first", now)
            marks["last"] = now
            self.captured.add_piece(Piece("backend", now, data))

    def close(self, trailers: Mapping[str, str]) -> None:
        """Records that the body of the backend's response is complete."""
        if not self._over:
            self.captured.add(Close(monotonic(), dict(trailers)))

    def open(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Takes the head of the client's response."""
        self.captured.add(ClientHead(monotonic(), status, headers))

    def write(self, data: bytes) -> None:
        """Takes a write to the client."""
        if data == self._quiet:
            self._quiet = b""  # kept already, when it was made
        elif data:
            self.captured.add_piece(Piece("client", monotonic(), data))

    def keep_alive(self, data: bytes) -> None:
        """Takes what keeps the client's connection alive; it will be written in a moment."""
        if data:
            self._quiet = data
            self.captured.add_piece(Piece("client", monotonic(), data, quiet=True))

    def answer_head(self, head: AnswerHead) -> AnswerHead:
        """Takes the facts of the answer. Returns them with a clock and times that are recorded."""
        clock, times = head.clock, head.times

        def read_clock() -> int:
            self._clock.append(now := clock())
            return now

        def read_times() -> AnswerTimes:
            found = times()
            self._answer = replace(answer, times=found)
            return found

        answer = self._answer = AnswerLine(0, head.unique, head.created, (), head.stored)
        return replace(head, clock=read_clock, times=read_times)

    def note(self, notice: Notice, at: float | None = None) -> None:
        """Takes a notice of this time; None: of now."""
        self._notices.append((monotonic() if at is None else at, notice))

    def set_times(self, began: float, marks: Mapping[str, float]) -> None:
        """Takes the times of a request of which everything is taken at once, behind it."""
        self._began, self._marks = began, {**marks}

    def fail(self, error: GatewayError) -> None:
        """Takes the error that ends the request."""
        self._failure = failure_of(error)
        if isinstance(error, BackendTimeout):
            self._cut = "timeout"
        elif isinstance(error, BackendUnavailable) and "head" not in self._marks:
            self._cut = "reset"

    def add_try(self, model: str, backend: str, code: str, status: int, at: float) -> None:
        """Takes a try that has failed at this time, and gives up what the backend sent: what follows is of another."""
        self._tries.append(TryLine(0, self._since(at), model, backend, code, status))
        self.captured.drop_backend()
        self._cut, self._sent = None, None
        for name in ("prepared", "connected", "head", "first", "last"):
            self._marks.pop(name, None)

    def cut(self, how: Cut) -> None:
        """Records what ended a response before it was complete."""
        self._cut = how

    def end(self, secrets: Sequence[str] = ()) -> None:
        """Records the end of the request. What the backend sends from now on is no part of it. `secrets` as in
        `prepare`: a request that was refused before says what it asks only now."""
        self._over = True
        self._marks["end"] = monotonic()
        # What has met a defect of the gateway would meet it again.
        is_readable = self._failure is None or self._failure.code != GatewayError.code
        if self.asked is None and self._body is not None and self._dialect and is_readable:
            self.asked = asked_of(client_turns(self._dialect, self._head, self._body), (*secrets, *self.secrets))
        if self.route is not None:
            # It may have got a token for this request.
            self._add_secrets(self.route.backend.secrets)

    def _add_secrets(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple(filter(None, dict.fromkeys((*self.secrets, *secrets))))

    def texts(self) -> list[bytes]:
        """Returns the contents that can be searched: the bodies of both requests, and either side of the answer."""
        return [*self._bodies, self.captured.joined("backend"), self.captured.joined("client")]

    def copied(self) -> "Capture":
        """Returns a copy, to which nothing more is added: another thread may read it."""
        return replace(
            self,
            captured=self.captured.copied(),
            _clock=[*self._clock],
            _notices=[*self._notices],
            _marks={**self._marks},
            _tries=[*self._tries],
        )

    def packed(self) -> bytes:
        """Returns everything but the route and what is asked in one piece of memory, which `unpacked` reads."""
        said = (self._notices, self._failure)
        # msgpack writes no numbers of more than 64 bits and no half of a surrogate pair, which words of a backend may
        # hold; marshal does, but takes longer.
        words = marshal.dumps(msgspec.to_builtins(said)) if self._notices or self._failure else b""
        return _ENCODER.encode(replace(self, route=None, asked=None, _notices=[], _failure=None, _packed=words))

    @classmethod
    def unpacked(cls, packed: bytes, route: Route | None) -> "Capture":
        """Returns the capture that was packed, with its route."""
        capture = _DECODER.decode(packed)
        capture.route = route
        if capture._packed:
            said = msgspec.convert(marshal.loads(capture._packed), tuple[list[tuple[float, Notice]], Failure | None])
            capture._notices, capture._failure = said
        return capture

    def interaction(
        self, status: int, code: str, phase: str, tokens: TokenCounts | None = None, x: int = 1
    ) -> Interaction:
        """Returns the request as a part of a recording."""
        marks = Marks(**{name: self._since(at) for name, at in self._marks.items()})
        usage = None if tokens is None else Tokens(tokens.prompt, tokens.completion)
        end = EndLine(x, status, code, phase, usage, marks, self._cut, self._failure)
        answer = self._answer
        return Interaction(
            self._request(x),
            self._route_line(x),
            self._sent_line(x),
            None if answer is None else replace(answer, x=x, clock=tuple(self._clock)),
            self.captured.steps(x, self._began),
            tuple(NoticeLine(x, self._since(at), notice) for at, notice in self._notices),
            end,
            tries=tuple([replace(tried, x=x) for tried in self._tries]),
        )

    def _request(self, x: int) -> RequestLine:
        head, body = self._head, self._body
        path, headers = request_path(head), request_headers(head)
        line = RequestLine(x, self.id, self._dialect, self.method, path, headers, session=self._named_session)
        if body is None:
            return replace(line, absent=self._absent)
        if self._whole_size:
            return replace(line, absent=self._absent, beginning=Beginning(data_of(body), self._whole_size))
        return replace(line, body=data_of(body))

    @property
    def _named_session(self) -> Session | None:
        """The session that the client names: any other is made of the body again."""
        return None if self.session is None or self.session.source == "conversation" else self.session

    def _route_line(self, x: int) -> RouteLine | None:
        if self.route is None:
            return None
        route, backend = self.route.entry, self.route.backend
        entry = backend.settings
        return RouteLine(
            x,
            self.route.model,
            backend.name,
            entry.adapter,
            route.name or "",
            entry.options,
            entry.profile or "",
            policy_fields(route.policy),
            backend.max_event,
            self._state,
            backend.state_label,
            route.context_length,
        )

    def _sent_line(self, x: int) -> SentLine | None:
        if self._sent is None:
            return None
        sent, t = self._sent, self._since(self._marks["prepared"])
        line = SentLine(x, sent.method, sent.path, t, sent.headers, http2=sent.http2, request_id=sent.request_id)
        if sent.body is None:
            return replace(line, absent="over_the_cap")
        return replace(line, body=data_of(sent.body))

    def _since(self, at: float) -> float:
        """Returns the milliseconds since the head of the request."""
        return milliseconds(at - self._began)


def _has_state(exchange: Exchange) -> bool:
    """Returns whether what the gateway keeps of other requests has a part in this one: it asks for state to keep, or
    puts some back; a turn of an earlier request has an index below those of this one; a summary stands for others, or
    results are shortened by the counts that were reported for others; pictures or PDFs were read, which is done once
    for all requests; another model was asked before."""
    conversation = exchange.conversation
    fitted = any([notice.stage == "state" for notice in exchange.prepared.notices])
    return (
        fitted
        or any(notice.rule in READ_RULES or notice.rule == "MODEL_SWITCHED" for notice in exchange.notices)
        or (
            conversation.keeps is not None
            or any(turn.summary or (turn.index is not None and turn.index < 0) for turn in conversation.turns)
        )
    )


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Capture)
