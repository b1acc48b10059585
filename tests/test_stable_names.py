"""Names that programs, dashboards and people rely on change only on purpose: each stands in tests/stable_names.json.

`make golden` writes the file from the code; a name that goes is a line that goes, which the CHANGELOG has to explain.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

import pytest

from gateway.registry import ADAPTERS
from gateway.server.telemetry.debug_log import api_name
from gateway.server.telemetry.metric_types import Metric
from gateway.server.telemetry.metrics import Metrics
from tests.paths import ROOT

FILE: Final = ROOT / "tests" / "stable_names.json"

# What a pattern that no longer reads its page would fall below.
LEAST: Final = {"log lines": 7, "requests in the log": 7, "metrics": 20, "settings": 100, "rules": 100, "codes": 50}


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def names() -> Mapping[str, list[str]]:
    """Returns the names by kind. Other tests hold the pages of settings, rules, notices and codes to the code."""
    rules = {*re.findall(r"`([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)`", _page("docs/notices.md") + _page("docs/rules.md"))}
    codes = re.findall(
        r"^\| `([a-z_]+)` \| [^|]+ \| [^|]+ \| [^|]+ \|$", _page("docs/errors.md").partition("<!-- codes -->")[2], re.M
    )
    lines = re.findall(r"^\| (`.+`.*) \| (?:info|error|debug) \|$", _page("README.md"), re.M)
    metrics = [vars(one) for one in vars(Metrics()).values() if isinstance(one, Metric)]
    return {
        "log lines": lines,
        "requests in the log": sorted(map(api_name, ADAPTERS)),
        "metrics": sorted(f"{one['name']} {' '.join(one['labels'])}".strip() for one in metrics),
        "settings": sorted({*re.findall(r"^\| `([a-z_.*`, ]+)` \|", _page("docs/settings.md"), re.M)}),
        "rules": sorted(rules),
        "codes": sorted(codes),
    }


def test_the_stable_names_are_those_of_the_file(pytestconfig: pytest.Config) -> None:
    text = json.dumps(names(), indent=1) + "\n"
    if pytestconfig.getoption("--rewrite-golden"):
        FILE.write_text(text, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == text, "make golden writes it"


def test_every_kind_is_read_whole() -> None:
    found = {kind: len(listed) for kind, listed in names().items()}
    assert [kind for kind, least in LEAST.items() if found[kind] < least] == []
    assert found.keys() == LEAST.keys()


def test_the_name_of_an_api_in_the_log_is_that_of_no_class() -> None:
    assert api_name("warp") == "Warp"
    assert (api_name("my_package.wire:MagpieAdapter"), api_name("magpie")) == ("Magpie", "Magpie")
