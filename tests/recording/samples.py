"""Recordings for tests, made of the golden folders: what the gateway would have recorded of each."""

from collections.abc import Sequence
from functools import cache

from gateway.recording.lines import (
    AnswerLine,
    BytesLine,
    CloseLine,
    HeadLine,
    RequestLine,
    RouteLine,
    data_of,
)
from gateway.recording.offline_run import run_offline
from gateway.recording.recording import Interaction, Recording, Step
from gateway.recording.remake import remade
from gateway.recording.route import policy_fields
from gateway.registry import load_dialect
from gateway.testing.golden import Golden, read_all
from gateway.testing.golden_runner import COMPLETED, CREATED, TIMES
from gateway.testing.replay import cut
from tests.golden_wires import READERS
from tests.paths import ROOT


@cache
def goldens() -> tuple[Golden, ...]:
    """Every golden folder whose adapter needs no file."""
    return tuple(one for one in read_all(ROOT / "tests" / "golden", READERS) if _is_plain(one))


def _is_plain(golden: Golden) -> bool:
    return "schema" not in golden.scenario.options and "preset" not in golden.scenario.options


def interaction_of(golden: Golden, cutting: Sequence[bytes] | None = None, x: int = 1) -> Interaction:
    """The golden folder as it would have been recorded, its response read in these pieces."""
    scenario = golden.scenario
    dialect = load_dialect(scenario.dialect)
    steps: list[Step] = [HeadLine(x, "backend", 1, scenario.status, scenario.headers)]
    pieces = cut(golden.wire, range(0, len(golden.wire), 97)) if cutting is None else cutting
    steps += [BytesLine(x, "backend", 2 + at, data_of(piece)) for at, piece in enumerate(pieces) if piece]
    steps.append(CloseLine(x, 2 + len(pieces)))
    inputs = Interaction(
        RequestLine(x, "req_golden", dialect.name, "POST", scenario.target, body=data_of(golden.request)),
        RouteLine(x, "m", "b", scenario.adapter, options=scenario.options, policy=policy_fields(scenario.policy)),
        answer=AnswerLine(x, "golden", CREATED, (COMPLETED,) * 9, times=TIMES),
        steps=tuple(steps),
    )
    return remade(inputs, run_offline(inputs))


@cache
def golden_recordings() -> tuple[Recording, ...]:
    return tuple(Recording().with_interactions([interaction_of(golden)]) for golden in goldens())


def names() -> list[str]:
    return [str(golden) for golden in goldens()]
