"""The probes of a backend, in the order in which they are tried.

What must come back with a call is asked before the histories with calls: those are then sent with it.
"""

from collections.abc import Sequence
from typing import Final

from gateway.diagnostics.doctor import (
    answer_probes,
    history_probes,
    long_probes,
    reach_probes,
    result_probes,
    slow_probes,
    state_probes,
    tool_probes,
    wire_probes,
)
from gateway.diagnostics.doctor.probe import Probe

PROBES: Final[Sequence[Probe]] = (
    *reach_probes.PROBES,
    *answer_probes.PROBES,
    *wire_probes.PROBES,
    *tool_probes.PROBES,
    *wire_probes.CALL_PROBES,
    *state_probes.PROBES,
    *result_probes.PROBES,
    *history_probes.PROBES,
    *slow_probes.PROBES,
    *long_probes.PROBES,
)


def chosen(slow: bool, only: Sequence[str] = ()) -> tuple[Probe, ...]:
    """Returns the probes to try: all but the slow ones, or those whose id begins with one of `only`."""
    if only:
        return tuple(probe for probe in PROBES if probe.id.startswith(tuple(only)))
    return tuple(probe for probe in PROBES if slow or not probe.slow)
