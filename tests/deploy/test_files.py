"""What the files in deploy/ say of the gateway is true of it."""

import json
import re
import runpy
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import COMMANDS
from gateway.server.telemetry.metric_types import Histogram
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import Settings
from tests.deploy.files import (
    ALERTS,
    COMPOSE,
    CONTAINERFILE,
    DASHBOARD,
    MANIFESTS,
    Named,
    alert_queries,
    dashboard_queries,
    documents,
    named,
)
from tests.paths import ROOT

IMAGE: Final = CONTAINERFILE.read_text(encoding="utf-8")


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


@pytest.mark.parametrize("name", ["prometheus.yaml", "compose.yaml"])
def test_a_scrape_has_the_name_that_the_alerts_ask_for_and_the_path_of_the_metrics(name: str) -> None:
    (config,) = documents(ALERTS.with_name(name))
    (job,) = config["scrape_configs"]
    named = {found for query in alert_queries() for found in re.findall(r'\bjob="(\w+)"', query)}
    assert {job["job_name"]} == named
    # Without one of its own, Prometheus asks /metrics.
    assert "metrics_path" not in job and "`GET /metrics`" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert config["rule_files"] == [ALERTS.name]


def test_prometheus_on_this_machine_asks_the_port_of_the_gateway() -> None:
    (config,) = documents(ALERTS.with_name("prometheus.yaml"))
    assert config["scrape_configs"][0]["static_configs"] == [{"targets": [f"127.0.0.1:{Settings().server.port}"]}]


def test_the_codes_of_the_alerts_are_codes_of_errors() -> None:
    codes = {code for query in alert_queries() for code in re.findall(r'\bcode="(\w+)"', query)}
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert codes and {code for code in codes if f"`{code}`" not in page} == set()


def test_the_alerts_are_tested_by_name() -> None:
    (alerts,), (tests,) = documents(ALERTS), documents(ALERTS.with_name("alerts_test.yaml"))
    fired = {case["alertname"] for test in tests["tests"] for case in test["alert_rule_test"] if "exp_alerts" in case}
    assert fired == {rule["alert"] for group in alerts["groups"] for rule in group["rules"]}


def copied() -> list[str]:
    """Returns what the image copies from the checkout."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", IMAGE, re.M)
    return [name for line in lines for name in line.split()[:-1]]


def test_what_the_image_copies_exists_and_nothing_else_is_handed_to_its_builder() -> None:
    assert [name for name in copied() if not Path(ROOT, name).exists()] == []
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()[1:]
    assert rules == ["*", *(f"!{name}" for name in copied()), "**/__pycache__"]


def test_what_the_image_starts_is_installed_and_asked_at_its_port() -> None:
    (program,) = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', IMAGE, re.M)
    assert f'{program} = "gateway.cli:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r'^CMD \["(\w+)"\]$', IMAGE, re.M)) <= COMMANDS.keys()
    port = Settings().server.port
    assert re.findall(r"^EXPOSE (\d+)$", IMAGE, re.M) == [str(port)]
    assert re.findall(r"http://[^']+", IMAGE) == [f"http://127.0.0.1:{port}/readyz"]


def test_the_image_has_the_user_of_compose_and_of_the_manifests() -> None:
    (user,) = re.findall(r"^USER (\d+:\d+)$", IMAGE, re.M)
    (compose,) = documents(COMPOSE)
    assert {service["user"] for service in compose["services"].values() if service["image"] == "dragoman"} == {user}
    (context,) = (
        one["spec"]["template"]["spec"]["securityContext"]
        for one in documents(MANIFESTS)
        if one["kind"] == "Deployment"
    )
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
