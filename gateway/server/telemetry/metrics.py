"""Declares the metrics of the gateway: one attribute each, in the order in which they are exported."""

from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeAlias

from gateway.server.telemetry.metric_types import Counter, Gauge, Histogram, Snapshot

QUICK: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
RATIOS: Final = (0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)

# Of whatever number of labels.
AnyMetric: TypeAlias = "Counter[*tuple[object, ...]] | Gauge[*tuple[object, ...]] | Histogram[*tuple[object, ...]]"


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.requests = Counter(
            "gateway_requests_total", "Requests that were served.", "route", "dialect", "key", "status"
        )
        self.errors = Counter("gateway_errors_total", "Requests that failed, for any reason.", "code", "phase")
        self.upstream_errors = Counter(
            "gateway_upstream_errors_total", "Failures of a backend.", "backend", "code", "phase"
        )
        self.upstream_rejections = Counter(
            "gateway_upstream_rejections_total", "Histories that a backend refused.", "backend", "rule"
        )
        self.truncated_streams = Counter(
            "gateway_truncated_streams_total", "Responses of a backend that ended before they were complete.", "backend"
        )
        self.ttfb_timeouts = Counter(
            "gateway_ttfb_timeouts_total", "Responses of a backend that did not begin in time.", "backend"
        )
        self.candidate_tries = Counter(
            "gateway_candidate_tries_total",
            "Tries of requests that may go on with another model: `answered`, or why they failed.",
            "backend",
            "outcome",
        )
        self.model_switches = Counter(
            "gateway_model_switches_total",
            "Requests that went on with another model than this backend's.",
            "backend",
            "cause",
        )
        self.unknown_events = Counter(
            "gateway_unknown_events_total", "Unknown events, fields and parts from a backend.", "backend"
        )
        self.unknown_fields = Counter(
            "gateway_unknown_fields_total",
            "Responses of a backend with a field or enum value that its schema lacks.",
            "backend",
            "path",
            "number",
        )
        self.late_events = Counter(
            "gateway_late_events_total", "Content and faults from a backend after the end of its response.", "backend"
        )
        self.client_aborts = Counter(
            "gateway_client_aborts_total", "Clients that disconnected before the response was complete.", "phase"
        )
        self.notices = Counter("gateway_notices_total", "Notices: changes and observations.", "stage", "rule")
        self.tokens = Counter("gateway_tokens_total", "Tokens as backends report them.", "backend", "key", "kind")
        self.summaries = Counter(
            "gateway_summaries_total",
            "Attempts to summarise a history: `stored`, `rejected`, `failed` or `lost`.",
            "backend",
            "outcome",
        )
        self.summary_tokens = Counter(
            "gateway_summary_tokens_total",
            "Tokens that summaries have cost, besides those of requests.",
            "backend",
            "key",
            "kind",
        )
        self.summarized_requests = Counter(
            "gateway_summarized_requests_total", "Requests that were sent with a summary.", "backend"
        )
        self.summary_saved_tokens = Counter(
            "gateway_summary_saved_tokens_total", "Tokens that requests were sent without, estimated.", "backend"
        )
        self.prompt_cache_requests = Counter(
            "gateway_prompt_cache_requests_total",
            "Requests whose prompt was compared with the one before it in its conversation.",
            "backend",
        )
        self.prompt_cache_breaks = Counter(
            "gateway_prompt_cache_breaks_total",
            "Requests of which a provider's prompt cache could not serve what the one before had.",
            "backend",
            "cause",
            "rule",
        )
        self.prompt_cache_lost_tokens = Counter(
            "gateway_prompt_cache_lost_tokens_total",
            "Prompt tokens that were read anew for that reason: by the backend's counts, else estimated.",
            "backend",
            "cause",
            "rule",
        )
        self.image_descriptions = Counter(
            "gateway_image_descriptions_total",
            "Images that another model was asked to describe, by the backend that was asked.",
            "backend",
            "outcome",
        )
        self.image_description_tokens = Counter(
            "gateway_image_description_tokens_total",
            "Tokens that descriptions of images have cost, besides those of requests.",
            "backend",
            "key",
            "kind",
        )
        self.budget_tokens = Counter(
            "gateway_budget_tokens_total",
            "Tokens that were counted in the budgets of keys, side calls included.",
            "key",
        )
        self.budget_micros = Counter(
            "gateway_budget_micros_total",
            "Millionths of a unit of money that were counted in the budgets of keys, side calls included.",
            "key",
        )
        self.budget_refusals = Counter(
            "gateway_budget_refusals_total",
            "Requests that a budget has refused: it is `spent`, the rest is `held` by others, or it is `unknown`.",
            "key",
            "budget",
            "reason",
        )
        self.documents = Counter(
            "gateway_documents_total", "PDFs whose text was read, by what became of it.", "outcome"
        )
        self.log_drops = Counter(
            "gateway_log_drops_total", "Log lines that were dropped: they came too fast or could not be written."
        )
        self.spans = Counter("gateway_spans_total", "Spans that the collector accepted.")
        self.span_drops = Counter(
            "gateway_span_drops_total",
            "Spans that did not fit into the queue or that the collector did not accept.",
        )
        self.config_reloads = Counter("gateway_config_reloads_total", "Reloads of the settings that succeeded.")
        self.config_reload_failures = Counter(
            "gateway_config_reload_failures_total",
            "Reloads of the settings that failed; the old settings stayed in use.",
        )
        self.worker_restarts = Counter(
            "gateway_worker_restarts_total", "Workers that ended unexpectedly and were restarted."
        )
        self.replays = Counter(
            "gateway_replays_total",
            "Turns whose provider wants state back, and answers whose state is kept, by what became of it.",
            "backend",
            "kind",
            "outcome",
        )
        self.state_operations = Counter(
            "gateway_state_operations_total",
            "Operations on the store of this gateway's state (`get`: entries).",
            "space",
            "op",
            "outcome",
        )
        self.leases = Counter(
            "gateway_leases_total", "What became of the leases that this gateway asked for.", "outcome"
        )
        self.state_evictions = Counter(
            "gateway_state_evictions_total",
            "Entries that the store of this gateway's state has removed by itself: `expired` or `full`.",
            "space",
            "reason",
        )
        self.state_unreadable = Counter(
            "gateway_state_unreadable_total",
            "Entries that could not be read: of an unknown `form`, under an unknown `key`, or with a broken `seal`.",
            "space",
            "reason",
        )
        self.prefix_requests = Counter(
            "gateway_prefix_requests_total",
            "Large requests that began like one before (`known`), or unlike all that are kept (`new`).",
            "beginning",
        )
        self.prefix_bytes = Gauge("gateway_prefix_bytes", "Bytes of what is kept of the beginnings of conversations.")
        self.running_requests = Gauge("gateway_running_requests", "Running chat requests.")
        self.summaries_running = Gauge("gateway_summaries_running", "Summaries that are being written.")
        self.open_streams = Gauge("gateway_open_streams", "Running chat requests that are streamed.")
        self.open_websockets = Gauge("gateway_open_websockets", "Open WebSockets of clients.")
        self.budget_share = Gauge(
            "gateway_budget_share", "What the workers have reserved of a budget and not spent.", "key", "budget"
        )
        self.open_circuits = Gauge(
            "gateway_open_circuits", "Workers that leave a backend alone after failures in a row.", "backend"
        )
        self.workers = Gauge("gateway_workers", "Running workers.")
        self.state_bytes = Gauge(
            "gateway_state_bytes", "Bytes of the entries in the memory of the workers and in the store's file.", "space"
        )
        self.request_seconds = Histogram(
            "gateway_request_seconds", "Time from a request's head to the end of its response.", "route", bounds=SLOW
        )
        self.first_event_seconds = Histogram(
            "gateway_first_event_seconds",
            "Time from a request's head to the first event of the backend's response.",
            "backend",
            bounds=SLOW,
        )
        self.state_seconds = Histogram(
            "gateway_state_seconds", "Time of a successful operation on the store.", "op", bounds=QUICK
        )
        self.summary_seconds = Histogram(
            "gateway_summary_seconds", "Time of a backend to write a summary.", "backend", bounds=SLOW
        )
        self.estimate_ratio = Histogram(
            "gateway_estimate_ratio",
            "Prompt tokens that a backend reports for a long history, by those that were estimated.",
            "backend",
            bounds=RATIOS,
        )
        self.overhead_seconds = Histogram(
            "gateway_overhead_seconds",
            "Time of a successful chat request without the waits for its body and for the backend.",
            bounds=QUICK,
        )

    def __iter__(self) -> Iterator[AnyMetric]:
        """Yields the metrics in the order of their declaration."""
        return iter(vars(self).values())

    def snapshot(self) -> Snapshot:
        """Returns the values as they are now."""
        return Snapshot(
            tuple(chain.from_iterable(one.samples() for one in self if isinstance(one, Counter))),
            tuple(chain.from_iterable(one.samples() for one in self if isinstance(one, Gauge))),
            tuple(chain.from_iterable(one.samples() for one in self if isinstance(one, Histogram))),
        )
