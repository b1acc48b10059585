"""What happened, counted -> the text that Prometheus reads (exposition format 0.0.4)."""

from collections import Counter
from typing import Final

NAMES: Final = {
    "gateway_requests_total": ("route", "status"),
    "gateway_notices_total": ("stage", "rule"),
    "gateway_upstream_errors_total": ("backend", "code", "phase"),
    "gateway_client_aborts_total": ("phase",),
}


class Metrics:
    """Counters. A label's values come from closed sets (routes, codes, settings), never from what a client writes."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def count(self, name: str, *values: str) -> None:
        """One more of this; `values` are those of the labels in NAMES."""
        self._counts[name, values] += 1

    def value(self, name: str, *values: str) -> int:
        """How many so far."""
        return self._counts[name, values]

    def text(self, running: int) -> str:
        """All counters, and how many requests are being served at this moment."""
        lines = ["# TYPE gateway_running_requests gauge", f"gateway_running_requests {running}"]
        for name, labels in NAMES.items():
            lines.append(f"# TYPE {name} counter")
            lines += (
                f"{name}{{{_pairs(labels, values)}}} {count}"
                for (counted, values), count in sorted(self._counts.items())
                if counted == name
            )
        return "\n".join(lines) + "\n"


def _pairs(labels: tuple[str, ...], values: tuple[str, ...]) -> str:
    return ",".join(f"{label}={_quoted(value)}" for label, value in zip(labels, values, strict=True))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
