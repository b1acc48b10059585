"""The two tiers of the tests: `make test` runs the first, and `make test-full` runs the rest.

What is marked `full` is in the second tier. Of a test that is marked with `sample`, and of any with more than five
cases, the first tier has a few cases, the same in each run, and the second tier has the others. A law of hypothesis is
in both: with more examples in the second.
"""

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

import pytest

Tier: TypeAlias = Literal["first", "full", "all"]
TIERS: Final[tuple[Tier, ...]] = get_args(Tier)
# The cases in the first tier of a test without a mark.
MOST: Final = 4

# The name of a parameter, the names of several (each combination of their values), or a function of parameters, which
# are those that its own have the names of.
Feature: TypeAlias = str | tuple[str, ...] | Callable[..., Hashable]


def sample(*features: Feature) -> pytest.MarkDecorator:
    """The mark of a test of which the first tier has enough cases for each value of each of these features to occur at
    least once. Without features, these are the values of each parameter."""
    return pytest.mark.sample.with_args(*features)


def chosen(items: Iterable[pytest.Item], tier: Tier) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests of a tier, and those that are not in it, both in their order."""
    every = list(items)
    rest = _second(every)
    of_tier: Mapping[Tier, Callable[[pytest.Item], bool]] = {
        "first": lambda item: item.nodeid not in rest,
        "full": lambda item: item.nodeid in rest or _is_law(item),
        "all": lambda item: True,
    }
    taken: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in every:
        taken[of_tier[tier](item)].append(item)
    return taken[True], taken[False]


def covering(cases: Sequence[Sequence[Hashable]]) -> list[int]:
    """The indices of a few cases in which each value of each column of the cases occurs. It is always the case with the
    most values that are lacking, and the first of these."""
    lacking = {index: set(enumerate(case)) for index, case in enumerate(cases)}
    found = []
    while lacking := {index: cells for index, cells in lacking.items() if cells}:
        best = max(lacking, key=lambda index: len(lacking[index]))
        found.append(best)
        had = lacking.pop(best)
        for cells in lacking.values():
            cells -= had
    return sorted(found)


def spread(count: int) -> list[int]:
    """The indices of at most four of so many cases: the first, the last, and some that are equally far apart."""
    return [*range(count)] if count <= MOST else [at * (count - 1) // (MOST - 1) for at in range(MOST)]


def _second(items: Sequence[pytest.Item]) -> set[str]:
    """The node ids of the second tier."""
    rest = {item.nodeid for item in items if item.get_closest_marker("full")}
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        mark = cases[0].get_closest_marker("sample")
        kept = {*(covering([_values(case, mark) for case in cases]) if mark else spread(len(cases)))}
        rest |= {case.nodeid for index, case in enumerate(cases) if index not in kept}
    return rest


def _values(case: pytest.Function, mark: pytest.Mark) -> list[Hashable]:
    """The values of the features that the mark names."""
    features: Sequence[Feature] = mark.args or [*case.callspec.params]
    return [_value(feature, case.callspec.params) for feature in features]


def _value(feature: Feature, params: Mapping[str, object]) -> Hashable:
    if isinstance(feature, tuple):
        return tuple(_value(name, params) for name in feature)
    if isinstance(feature, str):
        value = params[feature]
        # Not every parameter is hashable, and the cases of a product share its values.
        return value if isinstance(value, str | int) else id(value)
    return feature(**{name: params[name] for name in inspect.signature(feature).parameters})


def _is_law(item: pytest.Item) -> bool:
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
