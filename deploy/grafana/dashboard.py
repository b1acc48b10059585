"""Writes dashboard.json, the Grafana dashboard of the gateway: `python deploy/grafana/dashboard.py`."""

import json
from pathlib import Path
from typing import Any, NamedTuple

WIDTH, HEIGHT = 8, 8


class Panel(NamedTuple):
    """A graph: its queries in PromQL, each with the legend of its series."""

    title: str
    unit: str
    queries: dict[str, str]


def _rate(metric: str, *labels: str, where: str = "") -> str:
    return f"sum by ({', '.join(labels)}) (rate({metric}{where}[$__rate_interval]))"


def _quantile(share: float, metric: str, *labels: str) -> str:
    return f"histogram_quantile({share}, {_rate(f'{metric}_bucket', 'le', *labels)})"


PANELS = (
    Panel("Requests by status", "reqps", {_rate("gateway_requests_total", "status"): "{{status}}"}),
    Panel("Requests by client key", "reqps", {_rate("gateway_requests_total", "key"): "{{key}}"}),
    Panel("Requests by dialect", "reqps", {_rate("gateway_requests_total", "dialect"): "{{dialect}}"}),
    Panel("Errors", "reqps", {_rate("gateway_errors_total", "code", "phase"): "{{code}} in {{phase}}"}),
    Panel(
        "Failures of backends",
        "reqps",
        {_rate("gateway_upstream_errors_total", "backend", "code"): "{{backend}} {{code}}"},
    ),
    Panel(
        "First event of an answer",
        "s",
        {
            _quantile(0.5, "gateway_first_event_seconds", "backend"): "{{backend}}, half",
            _quantile(0.95, "gateway_first_event_seconds", "backend"): "{{backend}}, 95 %",
        },
    ),
    Panel(
        "Time spent in the gateway",
        "s",
        {
            _quantile(0.5, "gateway_overhead_seconds"): "half of the requests",
            _quantile(0.99, "gateway_overhead_seconds"): "99 %",
        },
    ),
    Panel(
        "Running",
        "short",
        {
            "sum(gateway_running_requests)": "requests",
            "sum(gateway_open_streams)": "of them streams",
            "sum(gateway_workers)": "workers",
        },
    ),
    Panel("Tokens", "short", {_rate("gateway_tokens_total", "backend", "kind"): "{{backend}} {{kind}}"}),
    Panel(
        "Changes to requests and answers",
        "ops",
        {_rate("gateway_notices_total", "stage", "rule"): "{{stage}} {{rule}}"},
    ),
    Panel(
        "Store of state",
        "ops",
        {_rate("gateway_state_operations_total", "space", "op", "outcome"): "{{space}} {{op}} {{outcome}}"},
    ),
    Panel("Content of the store", "bytes", {"sum by (space) (gateway_state_bytes)": "{{space}}"}),
)


def dashboard() -> dict[str, Any]:
    """Returns the dashboard as Grafana imports it; it asks for the Prometheus data source."""
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "title": "Dragoman",
        "uid": "dragoman",
        "schemaVersion": 39,
        "tags": ["dragoman"],
        "timezone": "",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
        },
        "panels": [
            {
                "id": number + 1,
                "type": "timeseries",
                "title": panel.title,
                "datasource": source,
                "gridPos": {
                    "x": number % (24 // WIDTH) * WIDTH,
                    "y": number // (24 // WIDTH) * HEIGHT,
                    "w": WIDTH,
                    "h": HEIGHT,
                },
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + place), "datasource": source, "expr": query, "legendFormat": legend}
                    for place, (query, legend) in enumerate(panel.queries.items())
                ],
            }
            for number, panel in enumerate(PANELS)
        ],
    }


if __name__ == "__main__":
    text = json.dumps(dashboard(), indent=2) + "\n"
    Path(__file__).with_suffix(".json").write_text(text, encoding="utf-8")
