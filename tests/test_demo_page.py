"""The page about the demo backends lists every failure that they know, with its own words."""

import re
from collections.abc import Mapping

import pytest

from gateway.demo.agent.framing_options import FRAMING_OPTIONS
from gateway.demo.agent.scenarios import SCENARIOS
from gateway.demo.chat.faults import FAULTS as CHAT
from gateway.demo.text.faults import FAULTS as TEXT
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("demo-chat: `[[demo:NAME]]`", {name: about for name, (about, _) in CHAT.items()}),
        ("demo-text: `[[demo:NAME]]`", {name: about for name, (about, _) in TEXT.items()}),
        (
            "demo-agent: `[[scenario:NAME]]`",
            {name: found.about for name, found in SCENARIOS.items()} | dict(FRAMING_OPTIONS),
        ),
    ],
)
def test_the_page_lists_what_a_demo_backend_knows(heading: str, known: Mapping[str, str]) -> None:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.M)
    assert {name: about.replace("\\|", "|") for name, about in rows} == known
    assert len(rows) == len(known)
