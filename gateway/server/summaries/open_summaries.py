"""Builds compression for one worker."""

from gateway.server.summaries.jobs import SummaryJobs
from gateway.server.summaries.notices import SummaryReporter
from gateway.server.summaries.summaries import Summaries
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upstream.transport import Transport


def open_summaries(transport: Transport, metrics: Metrics, event_bus: EventBus) -> Summaries:
    """Returns the feature, without settings yet (`Summaries.use`)."""
    reporter = SummaryReporter(metrics, event_bus)
    return Summaries(SummaryJobs(transport, metrics, reporter), metrics, reporter)
