"""What is known of one client request while it is served: the source of its access line and diagnostic headers."""

import random
import time
from collections.abc import Iterable, Mapping
from typing import Final

from gateway.dialects.openai_chat.remarks import notice_object
from gateway.notices import Action, Notice
from gateway.server.feed import Feed
from gateway.server.log import LOGGER, log_notice, one_line
from gateway.server.metrics import Metrics
from gateway.types import Json

CLIENT_GONE: Final = 499
# Of a name that a client chose, this much goes into a log line.
SHOWN: Final = 200
ROUTES: Final = {"/v1/chat/completions": "chat", "/chat/completions": "chat", "/v1/models": "models"}
# Notices that tell of something seen or kept, not of a change to what was asked or answered.
_NO_CHANGE: Final[frozenset[Action]] = frozenset({"seen", "ignored", "held", "failed"})
_ids: Final = random.Random()
_ID_CHARS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def request_id(given: bytes | None) -> str:
    """The client's own id when it is sane (1 to 128 harmless characters), else a new one."""
    if given and len(given) <= 128 and _ID_CHARS.issuperset(given):
        return given.decode("ascii")
    return f"req_{unique()}"


def unique() -> str:
    """24 hexadecimal digits that will not come again. No secret: asking the kernel each time would cost 20 us."""
    return f"{_ids.getrandbits(96):024x}"


class Call:
    """One request: who asks, how it went, and what was changed."""

    __slots__ = (
        "_concluded",
        "_feed",
        "_metrics",
        "_started",
        "backend",
        "backend_status",
        "changes",
        "code",
        "explain",
        "headers",
        "id",
        "method",
        "model",
        "notices",
        "path",
        "phase",
    )

    def __init__(self, method: str, path: str, headers: Mapping[bytes, bytes], feed: Feed, metrics: Metrics) -> None:
        self.id = request_id(headers.get(b"x-request-id"))
        self.method = method
        self.path = path
        self.headers = headers
        self.model = self.backend = "-"
        self.code = "-"
        self.phase = "request"
        self.backend_status = 0
        self.changes: dict[str, int] = {}
        self.notices: list[Notice] = []
        self.explain = headers.get(b"x-dragoman-explain", b"") in (b"1", b"true")
        self._feed = feed
        self._metrics = metrics
        self._concluded = False
        self._started = time.monotonic()

    @property
    def ms(self) -> float:
        """Milliseconds since the request's head arrived."""
        return round((time.monotonic() - self._started) * 1000, 1)

    @property
    def changed(self) -> str:
        """Changes by stage: `repair=2; trim=1`."""
        return "; ".join(f"{stage}={count}" for stage, count in self.changes.items())

    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """What the gateway says about its own work in the head of an answer."""
        headers = [(b"x-dragoman-backend", one_line(self.backend).encode("ascii", "replace"))]
        if self.changes:
            headers.append((b"x-dragoman-changes", self.changed.encode("ascii")))
        return headers

    def note(self, notices: Iterable[Notice]) -> None:
        """Log notices, count the changes among them, show them in the feed."""
        for notice in notices:
            if notice.action not in _NO_CHANGE:
                self.changes[notice.stage] = self.changes.get(notice.stage, 0) + 1
            log_notice(notice, self.id)
            self._metrics.count("gateway_notices_total", notice.stage, notice.rule)
            if self._feed:
                self._feed.publish("notice", {"request": self.id, **notice_object(notice)})

    def blame(self, code: str) -> None:
        """Count a failure of the backend."""
        self._metrics.count("gateway_upstream_errors_total", self.backend, code, self.phase)

    def conclude(self, status: int) -> None:
        """Write the access line, once."""
        if self._concluded:
            return
        self._concluded = True
        self._metrics.count("gateway_requests_total", ROUTES.get(self.path, "other"), str(status))
        if status == CLIENT_GONE:
            self._metrics.count("gateway_client_aborts_total", self.phase)
        outcome: dict[str, Json] = {
            "request": self.id,
            "method": self.method,
            "path": self.path[:SHOWN],
            "model": self.model[:SHOWN],
            "backend": self.backend,
            "status": status,
            "code": self.code,
            "ms": self.ms,
            "changes": self.changed,
        }
        if self._feed:
            self._feed.publish("request", outcome)
        LOGGER.info(
            "%s %s model=%s backend=%s status=%d code=%s ms=%s changes=%r",
            self.method,
            self.path[:SHOWN],
            self.model[:SHOWN],
            self.backend,
            status,
            self.code,
            outcome["ms"],
            outcome["changes"],
            extra={"request_id": self.id},
        )
