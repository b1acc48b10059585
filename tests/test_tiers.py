"""`make test` and `make test-full` run every test between them, and only laws in both."""

import re
from typing import Final

import pytest

from tests.paths import ROOT
from tests.tiers import covering, spread

pytest_plugins = ["pytester"]

CONFTEST: Final = "from tests.conftest import pytest_addoption, pytest_collection_modifyitems, pytest_configure"
SUITE: Final = """
import pytest
from hypothesis import given, settings, strategies
from tests.tiers import sample

def test_plain():
    pass

@pytest.mark.full
def test_of_the_second_tier():
    pass

@sample()
@pytest.mark.parametrize("wire", ["x", "y", "z"])
@pytest.mark.parametrize("client", ["a", "b"])
def test_product(client, wire):
    pass

@sample(lambda number: number % 2)
@pytest.mark.parametrize("number", range(5))
def test_table(number):
    pass

@pytest.mark.parametrize("number", range(15))
def test_long_table(number):
    pass

@given(strategies.integers())
def test_law(number):
    print("examples:", settings().max_examples)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p _hypothesis_pytestplugin")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_suite=SUITE)
    pytester.makeini("[pytest]\naddopts = --strict-markers\nmarkers =\n  full: second\n  sample: some")
    return pytester


def collected(suite: pytest.Pytester, *options: str) -> list[str]:
    result = suite.runpytest_subprocess("--collect-only", "-q", *options)
    return [line.removeprefix("test_suite.py::") for line in result.outlines if "::" in line]


def test_each_test_is_in_a_tier_and_only_a_law_in_both(suite: pytest.Pytester) -> None:
    first, full, every = collected(suite), collected(suite, "--tier=full"), collected(suite, "--tier=all")
    assert first == [
        "test_plain",
        *("test_product[a-x]", "test_product[a-z]", "test_product[b-y]"),
        *("test_table[0]", "test_table[1]"),
        *(f"test_long_table[{number}]" for number in (0, 4, 9, 14)),
        "test_law",
    ]
    assert {*first} & {*full} == {"test_law"}
    assert [name for name in every if name in {*first, *full}] == every and len(every) == 29


def test_ci_runs_both_tiers() -> None:
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipes = dict(re.findall(r"^(test|test-full):.*\n(?:\t.*\n)*?\t.+ -m pytest(.*)", makefile, re.MULTILINE))
    assert {*recipes} <= {step.removeprefix("make ") for step in steps}
    assert "--tier" not in recipes["test"] and "--tier full" in recipes["test-full"]


def test_golden_files_are_rewritten_by_all_tests(suite: pytest.Pytester) -> None:
    assert collected(suite, "--rewrite-golden") == collected(suite, "--tier=all")


def test_a_case_that_is_named_runs(suite: pytest.Pytester) -> None:
    assert collected(suite, "test_suite.py::test_product[b-z]") == ["test_product[b-z]"]


@pytest.mark.parametrize(
    ("options", "examples"),
    [
        ((), 25),
        (("--tier=full",), 100),
        (("--tier=all", "--hypothesis-profile=thorough"), 2000),
    ],
)
def test_a_law_has_more_examples_in_the_second_tier(
    suite: pytest.Pytester, options: tuple[str, ...], examples: int
) -> None:
    result = suite.runpytest_subprocess("-s", *options, "-k", "law")
    assert result.stdout.str().count(f"examples: {examples}\n") == examples


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        ([], []),
        ([(), ()], []),
        ([("a",), ("a",), ("b",)], [0, 2]),
        ([(1, 1), (1, 2), (2, 1), (2, 2)], [0, 3]),
        ([(1, 1), (2, 1), (3, 2), (3, 1)], [0, 1, 2]),
    ],
)
def test_the_cases_that_are_chosen_have_every_value(cases: list[tuple[object, ...]], found: list[int]) -> None:
    assert covering(cases) == found


@pytest.mark.parametrize(("count", "found"), [(0, []), (4, [*range(4)]), (5, [0, 1, 2, 4]), (101, [0, 33, 66, 100])])
def test_a_few_cases_of_a_long_table_are_spread_over_it(count: int, found: list[int]) -> None:
    assert spread(count) == found
