"""Reports what becomes of summaries. A job has no client: its notices go to the log, the metrics and the event bus,
with the id of the request that started it."""

import time

import msgspec

from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.server.log.logger import log_notice
from gateway.server.summaries.summary_store import DAY_S
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.metrics import Metrics


class SummaryReporter:
    """Reports the notices of summaries where no request takes them."""

    def __init__(self, metrics: Metrics, event_bus: EventBus) -> None:
        self._metrics = metrics
        self._event_bus = event_bus
        self._reported: dict[str, int] = {}

    def report(self, notice: Notice, request_id: str) -> None:
        """Reports a notice as one of the request with this id."""
        self._metrics.notices.inc(notice.stage, notice.rule)
        log_notice(notice, request_id)
        if self._event_bus.watchers:
            self._event_bus.publish("notice", {"request": request_id, **msgspec.to_builtins(notice)})

    def report_daily(self, notice: Notice, request_id: str, tenant: str) -> None:
        """Reports a notice that would otherwise be repeated for each request of a tenant, once a day (UTC)."""
        today = int(time.time() // DAY_S)
        if self._reported.get(tenant) != today:
            self._reported[tenant] = today
            self.report(notice, request_id)


def candidate(turns: int) -> Notice:
    """A long history was seen for the first time."""
    detail = f"the first {turns} turns are worth a summary when a later request carries them again"
    return _notice("seen", "SUMMARY_CANDIDATE", detail)


def started(turns: int, covered_tokens: int, model: str) -> Notice:
    """A summary is being written."""
    detail = f"a summary of {turns} turns with about {covered_tokens} tokens is being written by {model!r}"
    return _notice("seen", "SUMMARY_STARTED", detail)


def stored(turns: int, covered_tokens: int, summary_tokens: int, generation: int) -> Notice:
    """A summary was written, and later requests use it."""
    replaced = f"replaces about {covered_tokens} tokens by {summary_tokens} (generation {generation})"
    detail = f"a summary of {turns} turns {replaced}"
    return _notice("added", "SUMMARY_STORED", detail)


def rejected(turns: int, reason: str) -> Notice:
    """The model's answer is no summary that could be used."""
    return _notice("failed", "SUMMARY_REJECTED", f"the summary of {turns} turns is not used: {reason}", "warning")


def failed(turns: int, reason: str) -> Notice:
    """No summary was written."""
    return _notice("failed", "SUMMARY_FAILED", f"the summary of {turns} turns was not written: {reason}", "warning")


def over_budget(turns: int, tokens: int) -> Notice:
    """The key has used its tokens of the day."""
    detail = f"no summary of {turns} turns: with its {tokens} tokens this key would exceed its tokens of the day"
    return _notice("seen", "SUMMARY_BUDGET", detail, "warning")


def futile(floor: int, trigger: int) -> Notice:
    """No summary would help."""
    detail = (
        f"no summary would help: system text, tools and newest turns alone take about {floor} tokens, "
        f"and histories are summarised above {trigger}"
    )
    return _notice("seen", "COMPRESSION_FUTILE", detail, "warning")


def _notice(action: Action, rule: NoticeRule, detail: str, level: Level = "info") -> Notice:
    return Notice("state", action, rule, detail, level=level)
