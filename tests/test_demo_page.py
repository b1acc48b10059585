"""The page about the demo backends lists every failure that they know, with its own words."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.demo.chat_faults import FAULTS as CHAT
from gateway.demo.framing import KNOBS
from gateway.demo.scenarios import SCENARIOS
from gateway.demo.text_faults import FAULTS as TEXT

PAGE = (Path(__file__).parent.parent / "docs" / "demo.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("demo-chat: `[[demo:NAME]]`", {name: about for name, (about, _) in CHAT.items()}),
        ("demo-text: `[[demo:NAME]]`", {name: about for name, (about, _) in TEXT.items()}),
        ("demo-agent: `[[scenario:NAME]]`", {name: found.about for name, found in SCENARIOS.items()} | dict(KNOBS)),
    ],
)
def test_the_page_lists_what_a_demo_backend_knows(heading: str, known: Mapping[str, str]) -> None:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.M)
    assert {name: about.replace("\\|", "|") for name, about in rows} == known
    assert len(rows) == len(known)
