"""Observes requests as traces: decides which of them are recorded, and owns the exporter of their spans."""

import random
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gateway.core.errors import SettingsError
from gateway.core.events import Finish, ResponseStart, UsageReport
from gateway.core.notices import Notice
from gateway.exchange import Exchange
from gateway.server.log.logger import LOGGER
from gateway.server.telemetry.request_context import CHAT, FailedTry, Outcome, RequestContext, RequestObserver
from gateway.server.telemetry.tracing.destination import Destination, destination_for
from gateway.server.telemetry.tracing.trace import Trace
from gateway.server.telemetry.tracing.traceparent import Parent, decode_traceparent, encode_traceparent
from gateway.server.upstream.backends import Backend
from gateway.settings import TracingSettings

if TYPE_CHECKING:
    from gateway.server.telemetry.tracing.export import Exporter

PACKAGE: Final = "opentelemetry.exporter.otlp.proto.http"


class Tracing(RequestObserver):
    """The traces of one process. `start` it after every fork: it owns a thread."""

    def __init__(self, settings: TracingSettings, destination: Destination) -> None:
        self._destination = destination
        self._exporter: Exporter | None = None
        self._traces: dict[RequestContext, Trace] = {}
        self._ids = random.Random()
        self.change(settings)

    def change(self, settings: TracingSettings) -> None:
        """Applies this sampled share from the next request on."""
        # The share is of the lower half of the id, as in the conventions' own sampler, so that all services that use it
        # agree.
        self._bound = round(settings.sample * 2**64)

    def redact(self, text: str) -> str:
        """Returns the text without the collector's key."""
        return self._destination.redact(text)

    def start(self, redact: Callable[[str], str]) -> "Exporter":
        """Starts the exporter. `redact` removes secrets from every text that is sent."""
        from gateway.server.telemetry.tracing.export import Exporter

        # Forked workers would otherwise continue with one and the same sequence.
        self._ids.seed()
        self._exporter = Exporter(self._destination, redact)
        return self._exporter

    def stop(self) -> None:
        """Sends the queued spans, for two seconds at most."""
        if self._exporter is not None:
            self._exporter.close()

    def begin(self, context: RequestContext) -> None:
        """Begins the trace of a chat request. Continues its client's trace, recorded or not as the client has decided;
        one that is not recorded is only passed on to the backend."""
        if self._exporter is None or context.route != CHAT or context.method != "POST":
            return
        caller = decode_traceparent(context.headers.get(b"traceparent"))
        trace_id = caller.trace_id if caller else self._ids.getrandbits(128) or 1
        sampled = caller.sampled if caller else trace_id & (2**64 - 1) < self._bound
        own = Parent(trace_id, self._ids.getrandbits(64) or 1, sampled)
        client = self._client(own)
        context.traceparent = encode_traceparent(client)
        if sampled:
            self._traces[context] = Trace(own, client.span_id, caller)

    def _client(self, own: Parent) -> Parent:
        return own._replace(span_id=self._ids.getrandbits(64) or 1)

    def connect(self, context: RequestContext, backend: Backend, exchange: Exchange) -> None:
        if trace := self._traces.get(context):
            trace.connect(backend, exchange)

    def notices(self, context: RequestContext, notices: Sequence[Notice]) -> None:
        if trace := self._traces.get(context):
            for notice in notices:
                trace.note(notice)

    def response(self, context: RequestContext, event: ResponseStart | Finish) -> None:
        if trace := self._traces.get(context):
            trace.record(event)

    def usage(self, context: RequestContext, usage: UsageReport) -> None:
        if trace := self._traces.get(context):
            trace.record(usage)

    def failed_try(self, context: RequestContext, tried: FailedTry) -> None:
        if trace := self._traces.get(context):
            client = self._client(trace.own)
            context.traceparent = encode_traceparent(client)
            trace.fail_try(tried, client.span_id)

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        trace = self._traces.pop(context, None)
        if trace is not None and self._exporter is not None:
            self._exporter.put(trace.conclude(context, outcome.status))


def open_tracing(settings: TracingSettings | None, environ: Mapping[str, str]) -> Tracing | None:
    """Returns traces as the settings ask for them; None where they do not. Raises SettingsError, also when the optional
    package is missing."""
    if settings is None:
        return None
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        LOGGER.warning("OTEL_SDK_DISABLED is set: there are no traces")
        return None
    try:
        found = find_spec(PACKAGE) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise SettingsError('tracing needs a package that is not installed: pip install "dragoman[otel]"')
    return Tracing(settings, destination_for(settings, environ))
