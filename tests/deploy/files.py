"""Where the files in deploy/ are, what stands in them, and what their queries name."""

import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from tests.paths import ROOT

DEPLOY: Final = ROOT / "deploy"
ALERTS: Final = DEPLOY / "prometheus" / "alerts.yaml"
COMPOSE: Final = DEPLOY / "compose.yaml"
DASHBOARD: Final = DEPLOY / "grafana" / "dashboard.json"
MANIFESTS: Final = DEPLOY / "kubernetes" / "dragoman.yaml"
MONITOR: Final = DEPLOY / "kubernetes" / "monitor.yaml"
UNIT: Final = DEPLOY / "systemd" / "dragoman.service"
CONTAINERFILE: Final = DEPLOY / "Containerfile"
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").iterdir())
PAGE: Final = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")


class Named(NamedTuple):
    """A metric in a query, and the labels that the query selects by or groups by."""

    metric: str
    labels: frozenset[str]


def documents(path: Path) -> list[Any]:
    """Returns the documents of a YAML file, with their anchors resolved."""
    return list(YAML(typ="safe").load_all(path))


def named(query: str) -> set[Named]:
    """Returns the metrics of a query; a grouping belongs to every metric behind it, up to the next grouping."""
    found = set()
    grouping: frozenset[str] = frozenset()
    for match in re.finditer(r"by \(([^)]*)\)|(gateway_\w+)(?:\{([^}]*)\})?", query):
        by, metric, selector = match.groups()
        if metric is None:
            grouping = frozenset(by.replace(",", " ").split()) - {"le"}
        else:
            found.add(Named(metric, grouping | frozenset(re.findall(r"(\w+)(?==|!|=~)", selector or ""))))
    return found


def dashboard_queries() -> list[str]:
    """Returns the queries of the dashboard's panels."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def alert_queries() -> list[str]:
    """Returns the conditions of the alerts."""
    (alerts,) = documents(ALERTS)
    return [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
