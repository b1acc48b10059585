"""Prints the report of `dragoman lab` for people, and as a table of Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.demo.lab.event import LabEvent
    from gateway.demo.lab.outcome import Outcome, Verdict
    from gateway.demo.lab.report import Report

# The verdicts, the worst first.
ORDER: "Final[tuple[Verdict, ...]]" = ("hung", "accepted", "silent", "gave up", "reported", "survived", "not met")


def report_text(report: "Report") -> str:
    """Returns the report as lines, the worst verdicts first."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: "Report") -> Iterator[str]:
    reads = f"it reads a file with {report.tool}" if report.tool else "it offers no tool that reads a file"
    yield f"{report.client}: {report.title}; {reads}"
    for verdict in ORDER:
        for one in report.having(verdict):
            yield f"  {one.event:<26} {one.shown:<34} {one.about}"
            if one.detail:
                yield f"       {one.detail}"
            if one.evidence:
                yield f'       "{one.evidence}"'
    yield ", ".join(f"{len(found)} {verdict}" for verdict in reversed(ORDER) if (found := report.having(verdict)))


def report_markdown(report: "Report") -> str:
    """Returns the report as a table."""
    rows = ((f"`{one.event}`", one.about, _cell(one)) for one in report.outcomes)
    return table(("event", "what is sent", report.client), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table of Markdown."""
    lines = (heads, ["---"] * len(heads), *rows)
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _cell(one: "Outcome") -> str:
    return f"{one.shown}: {one.detail}" if one.verdict == "accepted" else one.shown


def events_text(events: "Sequence[LabEvent]") -> str:
    """Returns a line for each event: its name, the APIs that have it, and what is sent."""
    return "".join(f"{one.name:<26} {', '.join(one.faults):<36} {one.about}\n" for one in events)
