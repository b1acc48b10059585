"""Every fast path names its measurement, its budget, and the law that holds it to the plain path."""

import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from bench.cases import CASES
from bench.fast_paths import MEASURES, PLAIN
from tests.paths import ROOT
from tests.test_budget import BUDGET

FAST_PATHS: Final = {
    str(path.relative_to(ROOT)): path
    for room in ("gateway", "adapters")
    for path in sorted((ROOT / room).rglob("*fast_path*.py"))
}
HEAD: Final = re.compile(r'# fast path: "(.+)", .+\n# budget: "(.+)"\n# law: (tests/.+)\.py\n#      (test_\w+)\n"""')


@pytest.mark.parametrize("name", FAST_PATHS)
def test_its_head_names_a_measurement_a_budget_and_a_law(name: str) -> None:
    head = HEAD.match(FAST_PATHS[name].read_text(encoding="utf-8"))
    assert head is not None
    case, budget, module, law = head.groups()
    assert case in CASES
    assert budget in BUDGET
    # A law is tried with values that hypothesis makes.
    assert getattr(import_module(module.replace("/", ".")), law).is_hypothesis_test


def test_each_is_measured_and_the_page_shows_it() -> None:
    assert MEASURES.keys() == PLAIN.keys() == FAST_PATHS.keys()
    page = Path(ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(\S+fast_path\S*\.py)` \| ([^|]+) \| [\d.]+ \| [\d.]+ \| [\d.]+ \|$", page, re.MULTILINE)
    assert shown == [(path, name) for path, measures in MEASURES.items() for name in measures]
