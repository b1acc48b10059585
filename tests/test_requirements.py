"""Every rule of the message engine has a row on the page with tests that exist."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.paths import ROOT

PAGE = ROOT / "tests" / "requirements.md"

# The closed list: rules of the protocol, of flattening and of cutting; of summaries; of providers; conflicts; faults;
# traps.
IDS = [
    *(f"R{number}" for number in (*range(1, 17), *range(20, 35), *range(40, 47))),
    *(f"S{number}" for number in range(1, 16)),
    *(f"R{number}" for number in range(50, 57)),
    *(f"C{number}" for number in range(1, 13)),
    *(f"L{number}" for number in range(1, 7)),
    *(f"B{number}" for number in range(1, 26)),
]


def _rows() -> Iterator[tuple[str, ...]]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| [A-Z]\d+ \|", line):
            yield tuple(cell.strip() for cell in line.strip("|").split(" |"))


ROWS = tuple(_rows())


@cache
def _tests(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_rule_stands_on_the_page_once() -> None:
    assert [row[0] for row in ROWS] == IDS


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_rule_is_proved_by_tests_that_exist(row: tuple[str, ...]) -> None:
    _, rule, proof, _ = row
    assert rule.endswith(".")
    named = [test.strip("`") for test in proof.split("<br>")]
    assert len(named) == len(set(named)) > 0
    assert [test for test in named if not _exists(test)] == []


def _exists(test: str) -> bool:
    """Whether there is such a test and, where a golden scenario is named in brackets, its folder."""
    path, _, name = test.partition("::")
    name, _, scenario = name.rstrip("]").partition("[")
    return name in _tests(path) and (not scenario or (ROOT / "tests" / "golden" / scenario / "scenario.toml").exists())
