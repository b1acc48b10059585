"""Encodes a snapshot of the metrics in the Prometheus text format (exposition format 0.0.4)."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from gateway.server.telemetry.metrics import FAMILIES, Family, Labels, Measured, Snapshot

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(snapshot: Snapshot) -> str:
    """Encodes every family, also one without values yet; one without labels then as 0."""
    lines: list[str] = []
    for name, family in FAMILIES.items():
        lines += (f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}")
        lines += sorted(_counted(name, family, snapshot))
        for measured in sorted(snapshot.measured, key=lambda one: one.labels):
            if measured.name == name:
                lines += _buckets(measured, family)
    return "\n".join(lines) + "\n"


def _counted(name: str, family: Family, snapshot: Snapshot) -> Iterator[str]:
    found = False
    for one in snapshot.counted:
        if one.name == name:
            found = True
            yield f"{name}{_braced(family.labels, one.labels)} {_number(one.value)}"
    if not found and not family.labels and family.kind != "histogram":
        yield f"{name} 0"


def _buckets(measured: Measured, family: Family) -> Iterator[str]:
    names = (*family.labels, "le")
    bounds = (*(_number(bound) for bound in family.bounds), "+Inf")
    total = 0
    for bound, total in zip(bounds, accumulate(measured.buckets), strict=True):
        yield f"{measured.name}_bucket{_braced(names, (*measured.labels, bound))} {total}"
    yield f"{measured.name}_sum{_braced(family.labels, measured.labels)} {measured.sum:.6f}"
    yield f"{measured.name}_count{_braced(family.labels, measured.labels)} {total}"


def _braced(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    return "{" + ",".join(f"{name}={_quoted(value)}" for name, value in zip(names, values, strict=True)) + "}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
