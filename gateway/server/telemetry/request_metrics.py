"""Counts and measures requests."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice, product
from typing import Final

from msgspec import UNSET

from gateway.core.backend_status import KNOWN_CODES
from gateway.core.errors import BackendError, BackendTimeout, BackendTruncated, GatewayError
from gateway.core.events import UsageReport
from gateway.core.notices import Notice, NoticeRule, Stage
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import (
    CLIENT_DISCONNECTED,
    NO_ERROR,
    SHOWN,
    FailedTry,
    Outcome,
    RequestContext,
    RequestObserver,
)

# The rules of notices that are also counted by backend.
UNKNOWN: Final = frozenset({"UNKNOWN_EVENT", "UNKNOWN_VARIANT", "UNKNOWN_MASK_PATH", "PART_UNKNOWN", "SCHEMA_OUTDATED"})
LATE: Final = frozenset({"LATE_EVENT", "LATE_CONTENT", "LATE_FAULT", "TAIL_BROKEN"})


# A backend fails while the gateway connects to it, before its first event, or within the answer.
_BACKEND_PHASES: Final = ("connect", "head", "stream")
_OF_BACKENDS: Final = "upstream_"
# So many backends have their counters at 0; one of the rest has them from its first failure on.
_MOST_BACKENDS: Final = 50


def declare_errors(metrics: Metrics, codes: Collection[str], backends: Iterable[str]) -> None:
    """Exports the counters of errors at 0: each code of the gateway in the phase in which it occurs, and for each
    backend those of backends."""
    own = [code for code in codes if not code.startswith(_OF_BACKENDS)]
    of_backends = [
        *product(filter(lambda code: code.startswith(_OF_BACKENDS), codes), _BACKEND_PHASES),
        # What a backend says itself, it says instead of an answer.
        *((code, "head") for code in sorted(KNOWN_CODES)),
    ]
    for code, phase in (*((code, "request") for code in own), *of_backends):
        metrics.errors.declare(code, phase)
    for backend in islice(backends, _MOST_BACKENDS):
        metrics.truncated_streams.declare(backend)
        metrics.ttfb_timeouts.declare(backend)
        for code, phase in of_backends:
            metrics.upstream_errors.declare(backend, code, phase)


class RequestMetrics(RequestObserver):
    """The metrics of requests."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def notices(self, context: RequestContext, notices: Sequence[Notice]) -> None:
        counts: dict[tuple[Stage, NoticeRule], int] = {}
        for notice in notices:
            kind = (notice.stage, notice.rule)
            counts[kind] = counts.get(kind, 0) + 1
            if notice.rule in UNKNOWN:
                self._metrics.unknown_events.inc(context.backend)
                if notice.unknown is not UNSET:
                    self._metrics.unknown_fields.inc(context.backend, notice.unknown.path, str(notice.unknown.number))
            elif notice.rule in LATE:
                self._metrics.late_events.inc(context.backend)
        for (stage, rule), count in counts.items():
            self._metrics.notices.inc(stage, rule, by=count)

    def open_stream(self, context: RequestContext) -> None:
        self._metrics.open_streams.inc()

    def first_event(self, context: RequestContext, seconds: float) -> None:
        self._metrics.first_event_seconds.observe(seconds, context.backend)

    def usage(self, context: RequestContext, usage: UsageReport) -> None:
        """Counts the tokens that a backend reports, and none that are estimated. A later report of a response replaces
        an earlier one: only what it adds counts."""
        if usage.estimated:
            return
        if (tokens := usage.prompt_tokens) and tokens > context.prompt_tokens:
            self._metrics.tokens.inc(context.backend, context.key, "prompt", by=tokens - context.prompt_tokens)
            context.prompt_tokens = tokens
        if (tokens := usage.completion_tokens) and tokens > context.completion_tokens:
            added = tokens - context.completion_tokens
            self._metrics.tokens.inc(context.backend, context.key, "completion", by=added)
            context.completion_tokens = tokens

    def error(self, context: RequestContext, error: GatewayError) -> None:
        if not context.is_told(error):
            self._tell(context, error)

    def failed_try(self, context: RequestContext, tried: FailedTry) -> None:
        self._tell(context, tried.error)

    def _tell(self, context: RequestContext, error: GatewayError) -> None:
        if not isinstance(error, BackendError):
            return
        self._metrics.upstream_errors.inc(context.backend, (error.code or NO_ERROR)[:SHOWN], context.phase)
        if isinstance(rule := error.extra.get("rule"), str):
            self._metrics.upstream_rejections.inc(context.backend, rule)
        if isinstance(error, BackendTruncated):
            self._metrics.truncated_streams.inc(context.backend)
        if isinstance(error, BackendTimeout) and not context.begun:
            self._metrics.ttfb_timeouts.inc(context.backend)

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        metrics = self._metrics
        metrics.requests.inc(context.route, context.dialect, context.key, str(outcome.status))
        metrics.request_seconds.observe(context.seconds, context.route)
        if context.streamed:
            metrics.open_streams.dec()
        if outcome.status == CLIENT_DISCONNECTED:
            metrics.client_aborts.inc(context.phase)
        elif outcome.code != NO_ERROR:
            metrics.errors.inc(outcome.code[:SHOWN], context.phase)
        elif context.begun:
            metrics.overhead_seconds.observe(context.seconds - context.waited)
