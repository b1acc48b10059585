"""What is known of one client request while it is served: the source of its access line and diagnostic headers."""

import logging
import os
import random
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from gateway.dialects.openai_chat.remarks import notice_object
from gateway.errors import BackendTimeout, BackendTruncated, GatewayError
from gateway.events import UsageReport
from gateway.notices import Action, Notice
from gateway.server.feed import Feed
from gateway.server.keys import NOBODY
from gateway.server.log import log_line, log_notice, one_line
from gateway.server.metrics import OF_RULE, Metrics
from gateway.server.tracing import Trace
from gateway.types import Json

CLIENT_GONE: Final = 499
# What a request is said to be for while nobody knows it yet.
UNROUTED: Final = "-"
# Of a name that a client chose, this much goes into a log line.
SHOWN: Final = 200
ROUTES: Final = {"/v1/chat/completions": "chat", "/chat/completions": "chat", "/v1/models": "models"}
_ACCESS: Final = "%s %s key=%s model=%s backend=%s status=%d code=%s ms=%s changes=%r"
_OUTCOME: Final = ("method", "path", "key", "model", "backend", "status", "code", "ms", "changes")
# Notices that tell of something seen or kept, not of a change to what was asked or answered.
_NO_CHANGE: Final[frozenset[Action]] = frozenset({"seen", "ignored", "failed"})
_ids: Final = random.Random()
# Workers would otherwise go on with one and the same sequence.
os.register_at_fork(after_in_child=_ids.seed)
_ID_CHARS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def request_id(given: bytes | None) -> str:
    """The client's own id when it is sane (1 to 128 harmless characters), else a new one."""
    if given and len(given) <= 128 and _ID_CHARS.issuperset(given):
        return given.decode("ascii")
    return f"req_{unique()}"


def unique() -> str:
    """24 hexadecimal digits that will not come again. No secret: asking the kernel each time would cost 20 us."""
    return _ids.getrandbits(96).to_bytes(12, "big").hex()


class Call:
    """One request: who asks, how it went, and what was changed."""

    __slots__ = (
        "_begun",
        "_concluded",
        "_feed",
        "_metrics",
        "_started",
        "attempt",
        "backend",
        "backend_status",
        "changes",
        "code",
        "explain",
        "headers",
        "id",
        "key",
        "method",
        "model",
        "notices",
        "path",
        "phase",
        "trace",
        "waited",
    )

    def __init__(self, method: str, path: str, headers: Mapping[bytes, bytes], feed: Feed, metrics: Metrics) -> None:
        self.id = request_id(headers.get(b"x-request-id"))
        self.method = method
        self.path = path
        self.headers = headers
        self.key = NOBODY
        self.model = self.backend = UNROUTED
        self.code = "-"
        self.phase = "request"
        self.backend_status = 0
        self.attempt = 0
        self.changes: dict[str, int] = {}
        self.notices: list[Notice] = []
        self.explain = headers.get(b"x-dragoman-explain", b"") in (b"1", b"true")
        self.trace: Trace | None = None
        self._feed = feed
        self._metrics = metrics
        self.waited = 0.0
        self._begun = 0.0
        self._concluded = False
        self._started = time.monotonic()

    @property
    def ms(self) -> float:
        """Milliseconds since the request's head arrived."""
        return _ms(time.monotonic() - self._started)

    @property
    def changed(self) -> str:
        """Changes by stage: `repair=2; trim=1`."""
        return "; ".join(f"{stage}={count}" for stage, count in self.changes.items())

    def try_backend(self) -> None:
        """The request goes to the backend, perhaps not for the first time."""
        self.attempt += 1

    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """What the gateway says about its own work in the head of an answer."""
        headers: list[tuple[bytes, bytes]] = []
        if self.backend != UNROUTED:
            headers.append((b"x-dragoman-backend", _shown(self.backend)))
        if self.changes:
            headers.append((b"x-dragoman-changes", self.changed.encode("ascii")))
        return headers

    def note(self, notices: Iterable[Notice]) -> None:
        """Log notices, count the changes among them, show them in the feed."""
        for notice in notices:
            if notice.action not in _NO_CHANGE:
                self.changes[notice.stage] = self.changes.get(notice.stage, 0) + 1
            log_notice(notice, self.id)
            if self.trace is not None:
                self.trace.note(notice)
            self._metrics.count("gateway_notices_total", notice.stage, notice.rule)
            if (counter := OF_RULE.get(notice.rule)) is not None:
                self._metrics.count(counter, self.backend)
            if self._feed.watchers:
                self._feed.publish("notice", {"request": self.id, **notice_object(notice)})

    def begin(self) -> None:
        """The first events of the answer have come."""
        if not self._begun:
            self.phase = "stream"
            self._begun = time.monotonic()
            self._metrics.observe("gateway_first_event_seconds", self._begun - self._started, self.backend)

    def stream(self, by: int) -> None:
        """A stream is opened, or (-1) it has ended."""
        self._metrics.count("gateway_open_streams", by=by)

    def use(self, usage: UsageReport) -> None:
        """Count tokens that a backend reports."""
        for kind, tokens in (("prompt", usage.prompt_tokens), ("completion", usage.completion_tokens)):
            if tokens and tokens > 0:
                self._metrics.count("gateway_tokens_total", self.backend, self.key, kind, by=tokens)

    def blame(self, error: GatewayError) -> None:
        """Count a failure of the backend."""
        self._metrics.count("gateway_upstream_errors_total", self.backend, self.code[:SHOWN], self.phase)
        if isinstance(rule := error.extra.get("rule"), str):
            self._metrics.count("gateway_upstream_rejections_total", self.backend, rule)
        if isinstance(error, BackendTruncated):
            self._metrics.count("gateway_truncated_streams_total", self.backend)
        if isinstance(error, BackendTimeout) and not self._begun:
            self._metrics.count("gateway_ttfb_timeouts_total", self.backend)

    def conclude(self, status: int) -> None:
        """Count and measure the request and write its access line, once."""
        if self._concluded:
            return
        self._concluded = True
        if self.trace is not None:
            self.trace.conclude(self, status)
        took = time.monotonic() - self._started
        self._measure(status, took)
        outcome = (
            self.method,
            self.path[:SHOWN],
            self.key,
            self.model[:SHOWN],
            self.backend,
            status,
            self.code,
            _ms(took),
            self.changed if self.changes else "",
        )
        log_line(logging.INFO, self.id, _ACCESS, *outcome)
        if self._feed.watchers:
            told: dict[str, Json] = {"request": self.id, **dict(zip(_OUTCOME, outcome, strict=True))}
            self._feed.publish("request", told)

    def _measure(self, status: int, took: float) -> None:
        route = ROUTES.get(self.path, "other")
        self._metrics.end(route, self.key, status, took)
        if status == CLIENT_GONE:
            self._metrics.count("gateway_client_aborts_total", self.phase)
        elif self.code != "-":
            self._metrics.count("gateway_errors_total", self.code[:SHOWN], self.phase)
        elif route == "chat" and status == 200:
            self.begin()
            self._metrics.observe("gateway_overhead_seconds", took - self.waited)


@lru_cache
def _shown(name: str) -> bytes:
    return one_line(name).encode("ascii", "replace")


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
