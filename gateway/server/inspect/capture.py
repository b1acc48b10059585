"""Keeps references to what one request is made of while it is served, with its times.

A request has a capture only while somebody wants its contents (`RequestContext.capture`). Else that is None, which
costs one check at a handful of places of a request, and nothing at a chunk: the writer of the client and the response
of the backend are replaced by ones that keep what goes through them (`gateway.server.inspect.captured`).
"""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

import msgspec

from gateway.adapter import BackendRequest
from gateway.core.conversation import Turn
from gateway.core.errors import BackendTimeout, BackendUnavailable, GatewayError
from gateway.core.notices import Notice
from gateway.dialects.base import AnswerHead, Dialect, RequestHead
from gateway.exchange import Exchange
from gateway.recording.lines import (
    Absence,
    AnswerLine,
    Cut,
    EndLine,
    Failure,
    Marks,
    NoticeLine,
    RequestLine,
    RouteLine,
    SentLine,
    Tokens,
    data_of,
)
from gateway.recording.recording import Interaction
from gateway.recording.remake import failure_of
from gateway.recording.route import policy_fields
from gateway.server.inspect.conversation import conversation_name, first_user_turn
from gateway.server.inspect.kept_bytes import BackendHead, ClientHead, Close, KeptBytes, Piece, milliseconds
from gateway.server.inspect.recorded_heads import request_headers, request_path
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings

_NO_HEAD: Final = RequestHead("")
# The values that were read from a body of so many bytes are not kept beside it.
_LARGE: Final = 16 * 1024


class Capture:
    """One request. What a viewer or a recording needs is made when it is asked for; while the request is served, only
    references and times are taken."""

    __slots__ = (
        *("_answer_head", "_backend", "_began", "_body", "_clock", "_continues", "_conversation", "_cut", "_dialect"),
        *("_failure", "_first_user", "_head", "_id", "_kept", "_marks", "_method", "_model", "_most", "_notices"),
        *("_over", "_quiet", "_route", "_sent", "_usage"),
    )

    def __init__(self, request_id: str, method: str, most: int) -> None:
        """`most`: so many bytes of the answer are kept, and a body of more is not shown."""
        self._began = monotonic()
        self._id = request_id
        self._method = method
        self._most = most
        self._dialect: Dialect | None = None
        self._head = _NO_HEAD
        self._body: bytes | None = None
        self._model = ""
        self._backend: Backend | None = None
        self._route: ModelSettings | None = None
        self._sent: BackendRequest | None = None
        self._answer_head: AnswerHead | None = None
        self._clock: list[int] = []
        self._kept = KeptBytes(most)
        self._notices: list[tuple[float, Notice]] = []
        self._failure: Failure | None = None
        self._cut: Cut | None = None
        self._usage: Tokens | None = None
        # The time of each field of Marks.
        self._marks: dict[str, float] = {}
        self._quiet = b""
        self._continues = False
        self._first_user: Turn | None = None
        self._conversation = ""
        self._over = False

    @property
    def size(self) -> int:
        """The memory that the contents take, in bytes."""
        sent = self._sent
        return len(self._body or b"") + (0 if sent is None else len(sent.body)) + self._kept.size

    @property
    def keys(self) -> tuple[str, ...]:
        """The client's own secrets in the head of its request."""
        if self._dialect is None:
            return ()
        keys = (place.read(self._head).decode("utf-8", "replace") for place in self._dialect.key_places)
        return tuple(key for key in keys if key)

    @property
    def conversation(self) -> str:
        """A name that is equal for requests whose first user messages are equal; empty while there is none."""
        self._name_conversation()
        return self._conversation

    def _name_conversation(self) -> None:
        if self._first_user is not None:
            self._conversation = conversation_name(self._first_user)
            self._first_user = None

    def begin(self, dialect: Dialect, head: RequestHead) -> None:
        """Takes the head of the request."""
        self._dialect, self._head = dialect, head

    def read_request(self, body: bytes) -> None:
        """Takes the body of the client's request."""
        self._body = body
        self._marks["read"] = monotonic()

    def choose_route(self, model: str, route: ModelSettings, backend: Backend) -> None:
        """Takes the route, before anything is prepared for it."""
        self._model, self._route, self._backend = model, route, backend

    def prepare(self, exchange: Exchange) -> None:
        """Takes the request to the backend."""
        self._sent = exchange.request
        # A turn of an earlier request has an index below those of this one.
        self._continues = any(turn.index is not None and turn.index < 0 for turn in exchange.conversation.turns)
        self._first_user = first_user_turn(exchange.prepared.repaired.turns)
        if len(self._body or b"") > _LARGE:
            # Its text is not kept a second time.
            self._name_conversation()
        self._marks["prepared"] = monotonic()

    def send(self) -> None:
        """Records that the request has been written to the backend."""
        self._marks["connected"] = monotonic()

    def receive_head(self, status: int, headers: Mapping[str, str], compressed: bool) -> None:
        """Takes the head of the backend's response."""
        self._marks["head"] = now = monotonic()
        self._kept.add(BackendHead(now, status, headers, compressed))

    def read(self, data: bytes) -> None:
        """Takes a read of the backend's response."""
        if not self._over and data:
            marks, now = self._marks, monotonic()
            marks.setdefault("first", now)
            marks["last"] = now
            self._kept.add_piece(Piece("backend", now, data))

    def close(self, trailers: Mapping[str, str]) -> None:
        """Records that the body of the backend's response is complete."""
        if not self._over:
            self._kept.add(Close(monotonic(), trailers))

    def open(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Takes the head of the client's response."""
        self._kept.add(ClientHead(monotonic(), status, headers))

    def write(self, data: bytes) -> None:
        """Takes a write to the client."""
        if data == self._quiet:
            self._quiet = b""  # kept already, when it was made
        elif data:
            self._kept.add_piece(Piece("client", monotonic(), data))

    def keep_alive(self, data: bytes) -> None:
        """Takes what keeps the client's connection alive; it will be written in a moment."""
        if data:
            self._quiet = data
            self._kept.add_piece(Piece("client", monotonic(), data, quiet=True))

    def answer_head(self, head: AnswerHead) -> AnswerHead:
        """Takes the facts of the answer. Returns them with a clock that is recorded."""
        clock = head.clock

        def read_clock() -> int:
            self._clock.append(now := clock())
            return now

        self._answer_head = head
        return msgspec.structs.replace(head, clock=read_clock)

    def note(self, notice: Notice) -> None:
        """Takes a notice."""
        self._notices.append((monotonic(), notice))

    def use(self, prompt: int | None, completion: int | None) -> None:
        """Takes the token counts."""
        self._usage = Tokens(prompt, completion)

    def fail(self, error: GatewayError) -> None:
        """Takes the error that ends the request."""
        self._failure = failure_of(error)
        if isinstance(error, BackendTimeout):
            self._cut = "timeout"
        elif isinstance(error, BackendUnavailable) and "head" not in self._marks:
            self._cut = "reset"

    def cut(self, how: Cut) -> None:
        """Records what ended a response before it was complete."""
        self._cut = how

    def end(self) -> None:
        """Records the end of the request. What the backend sends from now on is no part of it."""
        self._over = True
        self._marks["end"] = monotonic()

    def texts(self) -> list[bytes]:
        """Returns what of the contents can be searched: the body, what was sent, and either side of the answer."""
        found = [b"" if self._body is None else self._body, b"" if self._sent is None else self._sent.body]
        return [*found, self._kept.joined("backend"), self._kept.joined("client")]

    def interaction(self, status: int, code: str, phase: str, x: int = 1) -> Interaction:
        """Returns the request as a part of a recording."""
        marks = Marks(**{name: self._since(at) for name, at in self._marks.items()})
        end = EndLine(x, status, code, phase, self._usage, marks, self._cut, self._failure)
        answer = self._answer_head
        return Interaction(
            self._request(x),
            self._route_line(x),
            self._sent_line(x),
            None if answer is None else AnswerLine(x, answer.unique, answer.created, tuple(self._clock), answer.stored),
            self._kept.steps(x, self._began),
            tuple(NoticeLine(x, self._since(at), notice) for at, notice in self._notices),
            end,
        )

    def _request(self, x: int) -> RequestLine:
        head, body = self._head, self._body
        name = "" if self._dialect is None else self._dialect.name
        absent = self._absence(body)
        kept = None if body is None or absent else data_of(body)
        return RequestLine(x, self._id, name, self._method, request_path(head), request_headers(head), kept, absent)

    def _absence(self, body: bytes | None) -> Absence | None:
        if body is None:
            return "never_kept"
        return "over_the_cap" if len(body) > self._most else None

    def _route_line(self, x: int) -> RouteLine | None:
        route, backend = self._route, self._backend
        if route is None or backend is None:
            return None
        entry = backend.settings
        return RouteLine(
            x,
            self._model,
            backend.name,
            entry.adapter,
            route.name or "",
            entry.options,
            entry.profile or "",
            policy_fields(route.policy),
            backend.max_event,
            self._continues or any(notice.stage == "state" for _, notice in self._notices),
        )

    def _sent_line(self, x: int) -> SentLine | None:
        if self._sent is None:
            return None
        sent, t = self._sent, self._since(self._marks["prepared"])
        absent = self._absence(sent.body)
        body = None if absent else data_of(sent.body)
        return SentLine(x, sent.method, sent.path, t, dict(sent.headers), body, sent.http2, absent)

    def _since(self, at: float) -> float:
        """Returns the milliseconds since the head of the request."""
        return milliseconds(at - self._began)
