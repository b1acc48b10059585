"""Where the files in deploy/ are, and what their queries name."""

import json
import re
from typing import Final, NamedTuple

from tests.paths import ROOT

DEPLOY: Final = ROOT / "deploy"
ALERTS: Final = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD: Final = DEPLOY / "grafana" / "dashboard.json"
MANIFESTS: Final = DEPLOY / "kubernetes" / "dragoman.yaml"
CONTAINERFILE: Final = DEPLOY / "Containerfile"
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").iterdir())


class Named(NamedTuple):
    """A metric in a query, and the labels that the query selects by or groups by."""

    metric: str
    labels: frozenset[str]


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
    """Returns the conditions of the alerts, as they stand in the file."""
    rules = ALERTS.read_text(encoding="utf-8").split("- alert: ")[1:]
    return [rule[rule.index("expr:") : rule.index("labels:")] for rule in rules]
