"""The table of events in docs/lab.md is made of the events."""

import re
from typing import Final

from gateway.commands.lab_report import table
from gateway.demo.lab.apis import LAB_APIS
from gateway.demo.lab.event import APIS, LabEvent
from gateway.demo.lab.events import EVENTS
from gateway.demo.lab.outcome import Verdict
from tests.paths import ROOT

PAGE: Final = ROOT / "docs" / "lab.md"
_HEADS: Final = ("event", "what is sent", "APIs")
_TABLE: Final = re.compile(r"\| event \| what is sent \| APIs \|\n(?:\|.*\n)+")


def _row(event: LabEvent) -> tuple[str, str, str]:
    apis = [LAB_APIS[api].title.removeprefix("Gemini ") for api in APIS if api in event.faults]
    return f"`{event.name}`", event.about, "all" if len(apis) == len(APIS) else ", ".join(apis)


def test_the_table_of_the_page_is_that_of_the_events(rewrite_golden: bool) -> None:
    text = PAGE.read_text(encoding="utf-8")
    wanted = table(_HEADS, map(_row, EVENTS))
    if rewrite_golden:
        PAGE.write_text(_TABLE.sub(lambda _: wanted, text), encoding="utf-8")
    assert _TABLE.findall(PAGE.read_text(encoding="utf-8")) == [wanted]


def test_the_page_explains_every_verdict() -> None:
    explained = PAGE.read_text(encoding="utf-8").partition("## Verdicts")[2].partition("##")[0]
    verdicts: tuple[Verdict, ...] = ("survived", "reported", "gave up", "silent", "accepted", "hung", "not met")
    assert re.findall(r"^\| ([a-z ]+) \| (?!means)", explained, re.M) == list(verdicts)
