"""Examines a backend: tries the probes in their order, and judges what each finds.

What must come back with a call is asked before the histories with calls: those are then sent with it.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from gateway.core.backend_status import public_text
from gateway.diagnostics.doctor import (
    answer_probes,
    history_probes,
    long_probes,
    reach_probes,
    slow_probes,
    state_probes,
    tool_probes,
    wire_probes,
)
from gateway.diagnostics.doctor.finding import Checked, Finding, Verdict, crashed, skipped
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.suggestion import merged

PROBES: Final[Sequence[Probe]] = (
    *reach_probes.PROBES,
    *answer_probes.PROBES,
    *wire_probes.PROBES,
    *tool_probes.PROBES,
    *wire_probes.CALL_PROBES,
    *state_probes.PROBES,
    *history_probes.PROBES,
    *slow_probes.PROBES,
    *long_probes.PROBES,
)

_ENOUGH: frozenset[Verdict] = frozenset({"ok", "todo"})


def chosen(slow: bool, only: Sequence[str] = ()) -> tuple[Probe, ...]:
    """Returns the probes to try: all but the slow ones, or those whose id begins with one of `only`."""
    if only:
        return tuple(probe for probe in PROBES if probe.id.startswith(tuple(only)))
    return tuple(probe for probe in PROBES if slow or not probe.slow)


async def examine(
    backend: ProbedBackend, probes: Sequence[Probe], begin: Callable[[Probe], None]
) -> tuple[Checked, ...]:
    """Returns the finding of each probe, without secrets. `begin` is called before each.

    What a probe found necessary holds for all later ones, so that one fault of a backend is reported once.
    """
    found: dict[str, Checked] = {}
    for probe in probes:
        begin(probe)
        missing = next((need for need in probe.needs if _lacks(found.get(need))), None)
        finding = skipped(f"it needs {missing}, which did not succeed") if missing else await _contained(probe, backend)
        if finding.verdict == "todo" and finding.changes:
            backend.remedies = merged(backend.remedies, finding.changes)
        elif finding.verdict == "todo" and finding.rule:
            backend.refusals.setdefault(finding.rule, probe.id)
        found[probe.id] = Checked(probe.id, probe.name, _redacted(finding, backend))
    return tuple(found.values())


def _lacks(need: Checked | None) -> bool:
    """Returns whether a probe that is needed did not succeed, or found that all of its kind is refused. One that was
    not chosen says nothing."""
    if need is None:
        return False
    found = need.finding
    return found.verdict not in _ENOUGH or found.undecided or (found.verdict == "todo" and bool(found.rule))


async def _contained(probe: Probe, backend: ProbedBackend) -> Finding:
    try:
        return await probe.run(backend)
    except Exception as error:  # noqa: BLE001 (the boundary of a probe: the others must still be tried)
        return crashed(error)


def _redacted(finding: Finding, backend: ProbedBackend) -> Finding:
    def clean(text: str) -> str:
        return backend.redact(public_text(text))

    return msgspec.structs.replace(
        finding, detail=clean(finding.detail), advice=clean(finding.advice), evidence=clean(finding.evidence)
    )
