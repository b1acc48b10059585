"""The page about the demo backends lists every fault with its description."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from adapters.warp.demo.framing_options import FRAMING_OPTIONS
from adapters.warp.demo.scenarios import SCENARIOS
from gateway.demo.faults.catalogue import COMMON, OTHER_KINDS, OWN
from gateway.demo.faults.fault import AFTER, ALL_WIRES, Fault
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def cells(heading: str, count: int) -> list[tuple[str, ...]]:
    """The cells of the rows with so many of them; the first is a name."""
    rows = (line for line in section(heading).splitlines() if line.startswith("| `"))
    found = (tuple(cell.replace("\\|", "|") for cell in re.split(r"(?<!\\) \| ", row[2:-2])) for row in rows)
    return [row for row in found if len(row) == count]


def kind_of(name: str, fault: Fault[Any]) -> str:
    others = [f"{wire}: `{kind}`" for (wire, other), kind in OTHER_KINDS.items() if other == name]
    return " ".join([f"`{fault.kind}`" if fault.kind else "-", *([f"({', '.join(others)})"] if others else [])])


def wires_of(fault: Fault[Any]) -> str:
    return "all" if fault.wires == ALL_WIRES else ", ".join(fault.wires)


def own_rows(faults: Mapping[str, Fault[Any]]) -> Iterable[tuple[str, ...]]:
    return [(f"`{name}`", fault.description, kind_of(name, fault)) for name, fault in faults.items()]


@pytest.mark.parametrize("wire", [wire for wire, faults in OWN.items() if faults])
def test_the_page_lists_the_faults_of_a_wire(wire: str) -> None:
    assert cells(f"demo-{wire}: `[[demo:NAME]]`", 3) == own_rows(OWN[wire])


def test_the_page_lists_the_faults_of_several_wires() -> None:
    assert cells("Faults of several wires: `[[demo:NAME]]`", 4) == [
        (f"`{name}`", fault.description, kind_of(name, fault), wires_of(fault))
        for name, fault in COMMON.items()
        if fault.serves is None
    ]
    assert all(
        f"{count} for `demo-{wire}`" in section("Faults on demand").replace("\n", " ") for wire, count in AFTER.items()
    )


def test_the_page_lists_what_only_an_address_asks_for() -> None:
    assert cells("Backends with a defect", 3) == [
        (f"`{name}`", fault.description, wires_of(fault)) for name, fault in COMMON.items() if fault.serves is not None
    ]


def test_the_page_lists_the_scenarios_of_the_agent() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (?:`(\w+)`|-) \|$", section("demo-agent: `[[scenario:NAME]]`"), re.M)
    assert rows == [(name, found.about, found.expect.kind) for name, found in SCENARIOS.items()]


def test_the_page_lists_the_framing_options() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", section("demo-agent: `[[scenario:NAME]]`"), re.M)
    assert dict(rows) == FRAMING_OPTIONS
    assert len(rows) == len(FRAMING_OPTIONS)
