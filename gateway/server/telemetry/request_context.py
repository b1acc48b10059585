"""Holds the facts of one client request while it is served: the source of its access line and diagnostic headers."""

import logging
import os
import random
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from gateway.core.conversation import Json
from gateway.core.errors import BackendTimeout, BackendTruncated, GatewayError
from gateway.core.events import UsageReport
from gateway.core.notices import Action, Notice
from gateway.dialects.openai_chat.diagnostics import notice_object
from gateway.server.access.api_keys import ANONYMOUS
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.log import log_line, log_notice, one_line
from gateway.server.telemetry.metrics import OF_RULE, Metrics
from gateway.server.telemetry.tracing import Trace

CLIENT_DISCONNECTED: Final = 499
# The backend and model of a request before routing.
UNROUTED: Final = "-"
# The number of characters of a client's chosen name that a log line shows.
SHOWN: Final = 200
ROUTES: Final = {"/v1/chat/completions": "chat", "/chat/completions": "chat", "/v1/models": "models"}
_ACCESS: Final = "%s %s key=%s model=%s backend=%s status=%d code=%s ms=%s changes=%r"
_OUTCOME: Final = ("method", "path", "key", "model", "backend", "status", "code", "ms", "changes")
# Notices that report an observed or kept value, not a change to the request or response.
_NO_CHANGE: Final[frozenset[Action]] = frozenset({"seen", "ignored", "failed"})
_ids: Final = random.Random()
# Forked workers would otherwise continue with one and the same sequence.
os.register_at_fork(after_in_child=_ids.seed)
_ID_CHARS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def request_id(given: bytes | None) -> str:
    """Returns the client's own id when it is valid (1 to 128 harmless characters), else a new one."""
    if given and len(given) <= 128 and _ID_CHARS.issuperset(given):
        return given.decode("ascii")
    return f"req_{unique()}"


def unique() -> str:
    """Returns 24 hexadecimal digits that do not repeat. Not a secret: asking the kernel each time would cost 20 us."""
    return _ids.getrandbits(96).to_bytes(12, "big").hex()


class RequestContext:
    """One request: its client, its outcome, and the changes made to it."""

    __slots__ = (
        "_begun",
        "_concluded",
        "_event_bus",
        "_metrics",
        "_started",
        "attempt",
        "backend",
        "backend_status",
        "changes",
        "code",
        "credential",
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

    def __init__(
        self, method: str, path: str, headers: Mapping[bytes, bytes], event_bus: EventBus, metrics: Metrics
    ) -> None:
        self.id = request_id(headers.get(b"x-request-id"))
        self.method = method
        self.path = path
        self.headers = headers
        self.key = ANONYMOUS
        self.model = self.backend = UNROUTED
        self.code = "-"
        self.phase = "request"
        self.backend_status = 0
        # The environment variable of the credential that the backend refused.
        self.credential = ""
        self.attempt = 0
        self.changes: dict[str, int] = {}
        self.notices: list[Notice] = []
        self.explain = headers.get(b"x-dragoman-explain", b"") in (b"1", b"true")
        self.trace: Trace | None = None
        self._event_bus = event_bus
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
        """Records an attempt to connect to the backend, which need not be the first one."""
        self.attempt += 1
        self.phase = "connect"

    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """Returns the headers that report the gateway's own work in a response."""
        headers: list[tuple[bytes, bytes]] = []
        if self.backend != UNROUTED:
            headers.append((b"x-dragoman-backend", _shown(self.backend)))
        if self.changes:
            headers.append((b"x-dragoman-changes", self.changed.encode("ascii")))
        return headers

    def note(self, notices: Iterable[Notice]) -> None:
        """Logs notices, counts the changes among them, and publishes them on the event bus."""
        for notice in notices:
            if notice.action not in _NO_CHANGE:
                self.changes[notice.stage] = self.changes.get(notice.stage, 0) + 1
            log_notice(notice, self.id)
            if self.trace is not None:
                self.trace.note(notice)
            self._metrics.count("gateway_notices_total", notice.stage, notice.rule)
            if (counter := OF_RULE.get(notice.rule)) is not None:
                self._metrics.count(counter, self.backend)
            if self._event_bus.watchers:
                self._event_bus.publish("notice", {"request": self.id, **notice_object(notice)})

    def begin(self) -> None:
        """Records the arrival of the response's first events."""
        if not self._begun:
            self.phase = "stream"
            self._begun = time.monotonic()
            self._metrics.observe("gateway_first_event_seconds", self._begun - self._started, self.backend)

    def stream(self, by: int) -> None:
        """Records that a stream is opened, or (-1) has ended."""
        self._metrics.count("gateway_open_streams", by=by)

    def use(self, usage: UsageReport) -> None:
        """Counts the tokens that a backend reports. Estimated tokens do not count."""
        if usage.estimated:
            return
        for kind, tokens in (("prompt", usage.prompt_tokens), ("completion", usage.completion_tokens)):
            if tokens and tokens > 0:
                self._metrics.count("gateway_tokens_total", self.backend, self.key, kind, by=tokens)

    def blame(self, error: GatewayError) -> None:
        """Counts a failure of the backend."""
        self._metrics.count("gateway_upstream_errors_total", self.backend, self.code[:SHOWN], self.phase)
        if isinstance(rule := error.extra.get("rule"), str):
            self._metrics.count("gateway_upstream_rejections_total", self.backend, rule)
        if isinstance(error, BackendTruncated):
            self._metrics.count("gateway_truncated_streams_total", self.backend)
        if isinstance(error, BackendTimeout) and not self._begun:
            self._metrics.count("gateway_ttfb_timeouts_total", self.backend)

    def conclude(self, status: int) -> None:
        """Counts and measures the request and writes its access line, once."""
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
        if self._event_bus.watchers:
            told: dict[str, Json] = {"request": self.id, **dict(zip(_OUTCOME, outcome, strict=True))}
            self._event_bus.publish("request", told)

    def _measure(self, status: int, took: float) -> None:
        route = ROUTES.get(self.path, "other")
        self._metrics.end(route, self.key, status, took)
        if status == CLIENT_DISCONNECTED:
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
