"""What the files in deploy/ say of the gateway is true of it."""

import json
import re
import runpy
from pathlib import Path

import pytest

from gateway.server.telemetry.metric_types import Histogram
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import parse_settings
from tests.deploy.files import (
    CONTAINERFILE,
    DASHBOARD,
    DEPLOY,
    MANIFESTS,
    Named,
    alert_queries,
    dashboard_queries,
    named,
)
from tests.paths import ROOT


def series() -> dict[str, frozenset[str]]:
    """The names under which Prometheus has the gateway's metrics, with their labels."""
    known = {}
    for metric in Metrics():
        suffixes = ("_bucket", "_count", "_sum") if isinstance(metric, Histogram) else ("",)
        known.update({metric.name + suffix: frozenset(metric.labels) for suffix in suffixes})
    return known


@pytest.mark.parametrize("query", [*dashboard_queries(), *alert_queries()])
def test_every_metric_and_label_of_a_query_exists(query: str) -> None:
    found, known = named(query), series()
    assert found or "up{" in query
    assert [one for one in found if one.labels - known.get(one.metric, frozenset())] == []
    assert {one.metric for one in found} <= known.keys()


def test_a_query_is_read_with_its_labels() -> None:
    query = 'sum by (a, le) (rate(gateway_x_bucket{b="1", c=~"2"}[5m])) / sum by (d) (gateway_y)'
    assert named(query) == {
        Named("gateway_x_bucket", frozenset("abc")),
        Named("gateway_y", frozenset("d")),
    }


def test_the_dashboard_is_what_its_table_makes() -> None:
    made = runpy.run_path(str(DASHBOARD.with_suffix(".py")))["dashboard"]()
    assert json.loads(DASHBOARD.read_text(encoding="utf-8")) == made


def test_the_settings_of_the_manifests_can_be_read_and_leave_time_to_stop() -> None:
    text = MANIFESTS.read_text(encoding="utf-8")
    (block,) = re.findall(r"settings\.json: \|\n((?:    .*\n)+)", text)
    settings = parse_settings(block)
    (grace,) = map(int, re.findall(r"terminationGracePeriodSeconds: (\d+)", text))
    (pause,) = map(int, re.findall(r"sleep: \{seconds: (\d+)\}", text))
    assert grace > pause + settings.server.graceful_shutdown_timeout_s
    assert settings.server.host == "0.0.0.0" and settings.log.file is None


@pytest.mark.parametrize("route", ["/readyz", "/healthz", "/metrics"])
def test_the_routes_of_the_files_are_served(route: str) -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file()]
    assert any(route in path.read_text(encoding="utf-8") for path in files)
    assert f"`GET {route}`" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_what_the_image_copies_exists_and_what_it_starts_is_installed() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M) for name in line.split()[:-1]]
    assert copied and [name for name in copied if not Path(ROOT, name).exists()] == []
    (program,) = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', text, re.M)
    assert f'{program} = "gateway.cli:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
