"""Tries the probes one after another; a fault in one does not stop the others."""

from collections.abc import Callable, Sequence

import msgspec

from gateway.core.backend_status import public_text
from gateway.diagnostics.doctor.finding import Checked, Finding, Verdict, crashed, skipped
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.suggestion import merged

_ENOUGH: frozenset[Verdict] = frozenset({"ok", "todo"})


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
    return found.verdict not in _ENOUGH or (found.verdict == "todo" and bool(found.rule))


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
