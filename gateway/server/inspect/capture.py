"""Keeps references to what one request is made of while it is served, with its times.

A request has a capture only while somebody wants its contents (`RequestContext.capture`). Else that is None, which
costs one check at a handful of places of a request, and nothing at a chunk: the writer of the client and the response
of the backend are replaced by ones that keep what goes through them (`gateway.server.inspect.captured`).
"""

import time
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from gateway.adapter import BackendRequest
from gateway.core.errors import BackendTimeout, BackendUnavailable, GatewayError
from gateway.core.notices import Notice
from gateway.dialects.base import AnswerHead, Dialect, RequestHead
from gateway.exchange import Exchange
from gateway.recording.lines import (
    Absence,
    AnswerLine,
    CloseLine,
    Cut,
    EndLine,
    Failure,
    HeadLine,
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
from gateway.server.inspect.conversation import conversation_name
from gateway.server.inspect.kept_bytes import KeptBytes, Piece
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings

# The headers of clients that a recording may hold.
CLIENT_HEADERS: Final = frozenset(
    {"accept", "content-type", "content-length", "user-agent", "x-dragoman-explain", "x-dragoman-state", "x-request-id"}
    | {"anthropic-version", "anthropic-beta", "openai-beta", "x-app", "x-stainless-lang", "x-stainless-package-version"}
)
# Those of backends, and the beginnings of others.
BACKEND_HEADERS: Final = frozenset(
    {"content-type", "content-encoding", "content-length", "date", "retry-after", "retry-after-ms", "server"}
    | {"request-id", "x-request-id", "x-should-retry", "x-warp-error-code"}
)
BACKEND_PREFIXES: Final = ("grpc-", "x-ratelimit-", "anthropic-ratelimit-")
# The parameters of a query that say how to answer; any other may be a key.
QUERY: Final = frozenset({"alt", "beta", "api-version"})


class Capture:
    """One request. `size` is that of its contents in bytes; `keys` are the client's own secrets in its head, and
    `conversation` is equal for requests whose first user messages are equal."""

    __slots__ = (
        *(
            "_answer",
            "_answer_head",
            "_backend",
            "_began",
            "_body",
            "_clock",
            "_continues",
            "_cut",
            "_dialect",
            "_failure",
            "_head",
        ),
        *("_id", "_kept", "_marks", "_method", "_model", "_most", "_notices", "_over", "_quiet", "_route", "_sent"),
        *("_usage", "conversation", "keys", "size"),
    )

    def __init__(self, request_id: str, method: str, most: int) -> None:
        self._began = time.monotonic()
        self._id = request_id
        self._method = method
        self._most = most
        self._dialect = ""
        self._head = RequestHead("")
        self._body: bytes | None = None
        self._model = ""
        self._backend: Backend | None = None
        self._route: ModelSettings | None = None
        self._sent: tuple[float, BackendRequest] | None = None
        self._answer_head: AnswerHead | None = None
        self._clock: list[int] = []
        self._kept = KeptBytes(most)
        self._notices: list[tuple[float, Notice]] = []
        self._failure: Failure | None = None
        self._cut: Cut | None = None
        self._usage: Tokens | None = None
        self._marks: dict[str, float] = {}
        self._quiet = b""
        self._continues = False
        self._over = False
        self.conversation = ""
        self.keys: tuple[str, ...] = ()
        self.size = 0

    @property
    def ms(self) -> float:
        """Milliseconds since the head of the request."""
        return round((time.monotonic() - self._began) * 1000, 3)

    def begin(self, dialect: Dialect, head: RequestHead) -> None:
        """Takes the head of the request."""
        self._dialect = dialect.name
        self._head = head
        keys = (place.read(head).decode("utf-8", "replace") for place in dialect.key_places)
        self.keys = tuple(key for key in keys if key)

    def read_request(self, body: bytes) -> None:
        """Takes the body of the client's request."""
        self._body = body
        self.size += len(body)
        self._marks["read"] = self.ms

    def choose_route(self, model: str, route: ModelSettings, backend: Backend) -> None:
        """Takes the route, before anything is prepared for it."""
        self._model, self._route, self._backend = model, route, backend

    def prepare(self, exchange: Exchange) -> None:
        """Takes the request to the backend."""
        request = exchange.request
        self._sent = (self.ms, request)
        self.size += len(request.body)
        # A turn of an earlier request has an index below those of this one.
        self._continues = any(turn.index is not None and turn.index < 0 for turn in exchange.conversation.turns)
        self._marks["prepared"] = self._sent[0]
        self.conversation = conversation_name(exchange.prepared.repaired.turns)

    def send(self) -> None:
        """Records that the request has been written to the backend."""
        self._marks["connected"] = self.ms

    def receive_head(self, status: int, headers: Mapping[str, str], compressed: bool) -> None:
        """Takes the head of the backend's response."""
        harmless = {name: value for name, value in headers.items() if _is_harmless(name)}
        self._marks["head"] = t = self.ms
        self._kept.add(HeadLine(0, "backend", t, status, harmless, compressed))

    def read(self, data: bytes) -> None:
        """Takes a read of the backend's response."""
        if not self._over and data:
            t = self.ms
            self._marks.setdefault("first", t)
            self._marks["last"] = t
            self._add(Piece("backend", t, data))

    def close(self, trailers: Mapping[str, str]) -> None:
        """Records that the body of the backend's response is complete."""
        if not self._over:
            self._kept.add(CloseLine(0, self.ms, dict(trailers)))

    def open(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Takes the head of the client's response."""
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        self._kept.add(HeadLine(0, "client", self.ms, status, named))

    def write(self, data: bytes) -> None:
        """Takes a write to the client."""
        if data == self._quiet:
            self._quiet = b""  # kept already, when it was made
        elif data:
            self._add(Piece("client", self.ms, data))

    def keep_alive(self, data: bytes) -> None:
        """Takes what keeps the client's connection alive; it will be written in a moment."""
        if data:
            self._quiet = data
            self._add(Piece("client", self.ms, data, quiet=True))

    def _add(self, piece: Piece) -> None:
        before = self._kept.size
        self._kept.add(piece)
        self.size += self._kept.size - before

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
        self._notices.append((self.ms, notice))

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
        self._marks["end"] = self.ms

    def texts(self) -> list[bytes]:
        """Returns what of the contents can be searched: the body, what was sent, and either side of the answer."""
        found = [b"" if self._body is None else self._body, b"" if self._sent is None else self._sent[1].body]
        return [*found, self._kept.joined("backend"), self._kept.joined("client")]

    def interaction(self, status: int, code: str, phase: str, x: int = 1) -> Interaction:
        """Returns the request as a part of a recording."""
        end = EndLine(x, status, code, phase, self._usage, Marks(**self._marks), self._cut, self._failure)
        answer = self._answer_head
        return Interaction(
            self._request(x),
            self._route_line(x),
            self._sent_line(x),
            None if answer is None else AnswerLine(x, answer.unique, answer.created, tuple(self._clock), answer.stored),
            self._kept.steps(x),
            tuple(NoticeLine(x, t, notice) for t, notice in self._notices),
            end,
        )

    def _request(self, x: int) -> RequestLine:
        head, body = self._head, self._body
        pairs = [pair for pair in parse_qsl(head.query.decode("latin-1"), keep_blank_values=True) if pair[0] in QUERY]
        path = quote(head.path, safe="/:@%+~,;=!$&'()*") + ("?" + urlencode(pairs) if pairs else "")
        named = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.items())
        headers = {name: value for name, value in named if name in CLIENT_HEADERS}
        absent = self._absence(body)
        kept = None if body is None or absent else data_of(body)
        return RequestLine(x, self._id, self._dialect, self._method, path, headers, kept, absent)

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
        t, request = self._sent
        absent = self._absence(request.body)
        body = None if absent else data_of(request.body)
        return SentLine(x, request.method, request.path, t, dict(request.headers), body, request.http2, absent)


def _is_harmless(name: str) -> bool:
    return name in BACKEND_HEADERS or name.startswith(BACKEND_PREFIXES)
