"""Prints the report of `dragoman doctor` for people, one line for what is in order and advice for the rest, and writes
its suggestions into the settings file, with a copy of the old one.
"""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.commands.settings_file import write_keys
from gateway.settings.edit import with_keys
from gateway.settings.hidden import shown_text

if TYPE_CHECKING:
    from gateway.diagnostics.doctor.finding import Checked, Report, Section, Verdict

# The verdicts of what is not in order, the worst first.
_FAULTY: "Final[tuple[Verdict, ...]]" = ("crashed", "broken", "todo")
_EVIDENCE: Final = 160


def report_text(report: "Report", settings: str, file: str, *, verbose: bool) -> str:
    """Returns the report as lines. `settings` is the text of the settings file, in which suggestions are shown as a
    diff, and `file` its name."""
    width = max((len(section.name) for section in report.sections), default=0)
    lines = [line for section in report.sections for line in _section(section, width, verbose)]
    return "\n".join([*lines, *_diff(report, settings, file)])


def suggested_text(settings: str, report: "Report") -> str:
    """Returns the text of the settings file with what the report suggests."""
    return with_keys(settings, _suggested_keys(report))


def _suggested_keys(report: "Report") -> dict[tuple[str, ...], Any]:  # Any: JSON
    return {one.path: one.value for section in report.sections for one in section.suggestions}


def _section(section: "Section", width: int, verbose: bool) -> Iterator[str]:
    faulty = section.having(*_FAULTY)
    good, skipped = len(section.having("ok")), len(section.having("skipped"))
    worst = next((verdict for verdict in _FAULTY if section.having(verdict)), "ok")
    counts = f"{good} ok" + (f", {skipped} skipped" if skipped else "")
    yield f"{section.name:<{width}}  {worst:<7}  {section.about}: {counts}"
    # They are tried in another order: what must come back is asked before the histories that need it.
    for one in sorted(section.findings if verbose else faulty, key=lambda one: one.id):
        yield from _finding(one)
    if faulty or verbose:
        if section.can:
            yield f"  can     {', '.join(section.can)}"
        if section.cannot:
            yield f"  cannot  {', '.join(section.cannot)}"


def _finding(one: "Checked") -> Iterator[str]:
    finding = one.finding
    yield f"  {one.id} {one.name:<18} {finding.verdict:<7} {finding.detail}".rstrip()
    if finding.evidence not in finding.detail:
        words = finding.evidence
        yield f'       "{words if len(words) <= _EVIDENCE else words[: _EVIDENCE - 1] + "…"}"'
    if finding.advice:
        yield f"       -> {finding.advice}"


def _diff(report: "Report", settings: str, file: str) -> list[str]:
    changed = suggested_text(settings, report)
    if changed == settings:
        return []
    before, after = shown_text(settings).splitlines(), shown_text(changed).splitlines()
    diff = difflib.unified_diff(before, after, file, f"{file} (suggested)", n=1, lineterm="")
    return ["suggested, and tried; --write changes the file:", *(f"  {line}" for line in diff)]


def write_suggestions(path: Path, text: str, report: "Report") -> None:
    """Sets the suggested keys in the file, and changes no other byte of it. `text` is what the report is about. Raises
    SettingsError where the file has changed since, or cannot be written."""
    write_keys(path, text, _suggested_keys(report), "while the backends were asked")
