"""The page about the demo backends lists every fault with its description."""

import re
from collections.abc import Mapping

import pytest

from gateway.demo.chat.faults import FAULTS as CHAT
from gateway.demo.defects.defect import ALL_WIRES
from gateway.demo.defects.table import DEFECTS
from gateway.demo.gemini.faults import FAULTS as GEMINI
from gateway.demo.grpc.faults import FAULTS as GRPC
from gateway.demo.messages.faults import FAULTS as MESSAGES
from gateway.demo.responses.faults import FAULTS as RESPONSES
from gateway.demo.text.faults import FAULTS as TEXT
from gateway.demo.warp.framing_options import FRAMING_OPTIONS
from gateway.demo.warp.scenarios import SCENARIOS
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("demo-chat: `[[demo:NAME]]`", {name: (fault.about, fault.kind) for name, fault in CHAT.items()}),
        ("demo-messages: `[[demo:NAME]]`", {name: (fault.about, fault.kind) for name, fault in MESSAGES.items()}),
        ("demo-responses: `[[demo:NAME]]`", {name: (fault.about, fault.kind) for name, fault in RESPONSES.items()}),
        ("demo-gemini: `[[demo:NAME]]`", {name: (fault.about, fault.kind) for name, fault in GEMINI.items()}),
        ("demo-text: `[[demo:NAME]]`", {name: (fault.about, fault.kind) for name, fault in TEXT.items()}),
        ("demo-grpc: `[[demo:NAME]]`", {name: (fault.about, fault.kind) for name, fault in GRPC.items()}),
        (
            "demo-agent: `[[scenario:NAME]]`",
            {name: (found.about, found.expect.kind) for name, found in SCENARIOS.items()},
        ),
    ],
)
def test_the_page_lists_what_a_demo_backend_knows(heading: str, known: Mapping[str, tuple[str, str]]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (?:`(\w+)`|-) \|$", section(heading), re.M)
    assert {name: (about.replace("\\|", "|"), kind) for name, about, kind in rows} == known
    assert len(rows) == len(known)


def test_the_page_lists_the_framing_options() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", section("demo-agent: `[[scenario:NAME]]`"), re.M)
    assert dict(rows) == FRAMING_OPTIONS
    assert len(rows) == len(FRAMING_OPTIONS)


def test_the_page_lists_the_defects() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| ([^|]+) \|$", section("Backends with a defect"), re.M)
    known = {
        name: (defect.about, "all" if defect.wires == ALL_WIRES else ", ".join(defect.wires))
        for name, defect in DEFECTS.items()
    }
    assert {name: (about, wires) for name, about, wires in rows} == known
    assert len(rows) == len(known)
