"""Creates traces from settings: decides which requests are recorded, and owns the exporter of their spans."""

import random
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gateway.core.errors import SettingsError
from gateway.server.telemetry.log import LOGGER
from gateway.server.telemetry.tracing.destination import Destination, destination_for
from gateway.server.telemetry.tracing.trace import Trace
from gateway.server.telemetry.tracing.traceparent import Parent, decode_traceparent
from gateway.settings import TracingSettings

if TYPE_CHECKING:
    from gateway.server.telemetry.tracing.export import Exporter

PACKAGE: Final = "opentelemetry.proto"


class Tracing:
    """The traces of one process. `start` it after every fork: it owns a thread."""

    def __init__(self, settings: TracingSettings, destination: Destination) -> None:
        self._destination = destination
        self._exporter: Exporter | None = None
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

    def begin(self, headers: Mapping[bytes, bytes]) -> Trace | None:
        """Begins the trace of a request. Continues its client's trace, recorded or not as the client has decided."""
        if self._exporter is None:
            return None
        caller = decode_traceparent(headers.get(b"traceparent"))
        trace_id = caller.trace_id if caller else self._ids.getrandbits(128) or 1
        sampled = caller.sampled if caller else trace_id & (2**64 - 1) < self._bound
        own = Parent(trace_id, self._ids.getrandbits(64) or 1, sampled)
        return Trace(own, self._ids.getrandbits(64) or 1, caller, self._exporter.give)


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
