"""The circuit of a backend: three failures open it, its pauses grow from 1 to 30 seconds, and one probe goes first."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import pytest

from gateway.server.upstream import circuit as module
from gateway.server.upstream.circuit import CIRCUIT_TRANSITIONS, CircuitInput, Circuits, CircuitState
from tests.transitions import arrows, followed, record

# What happens; a number: so many seconds pass.
Step: TypeAlias = Literal["ask", "answer", "fail"] | float

# The steps, and the inputs that follow.
STEPS: Mapping[str, tuple[tuple[Step, ...], tuple[CircuitInput, ...]]] = {
    "three in a row": (("fail", "fail", "fail"), ("failed", "failed", "tripped")),
    "an answer between": (
        ("fail", "fail", "answer", "fail", "fail"),
        ("failed", "failed", "answered", "failed", "failed"),
    ),
    "late ones": (
        ("fail", "fail", "fail", "fail", "answer"),
        ("failed", "failed", "tripped", "failed", "answered"),
    ),
    "a probe fails, and one says nothing": (
        ("fail", "fail", "fail", 1.0, "ask", "fail", 2.0, "ask", 2.0, "ask", "answer"),
        ("failed", "failed", "tripped", "probed", "failed", "probed", "probed", "answered"),
    ),
}


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("name", STEPS)
def test_the_inputs_follow_the_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = record(monkeypatch, "CIRCUIT_TRANSITIONS", module)
    clock = Clock()
    circuit = Circuits(clock, lambda _: None).of("b")
    steps, inputs = STEPS[name]
    for step in steps:
        if isinstance(step, float):
            clock.now += step
        else:
            getattr(circuit, step)()
    assert tuple(seen) == inputs


def test_every_arrow_of_the_table_is_taken() -> None:
    taken = [followed(CIRCUIT_TRANSITIONS, CircuitState.CLOSED, inputs) for _, inputs in STEPS.values()]
    assert set.union(*taken) == arrows(CIRCUIT_TRANSITIONS)


def test_the_pauses_double_up_to_thirty_seconds_and_begin_anew() -> None:
    clock = Clock()
    circuit = Circuits(clock, lambda _: None).of("b")
    for _ in range(3):
        assert circuit.lets_through
        circuit.fail()
    for pause in (1, 2, 4, 8, 16, 30, 30):
        clock.now += pause - 0.01
        early = circuit.lets_through
        clock.now += 0.02
        due = circuit.lets_through
        circuit.ask()
        # Only one request goes first.
        assert (early, due, circuit.lets_through) == (False, True, False)
        circuit.fail()
    clock.now += 31
    circuit.ask()
    circuit.answer()
    assert circuit.lets_through
    for _ in range(3):
        circuit.fail()
    clock.now += 1.01
    assert circuit.lets_through


def test_what_is_not_closed_is_reported_and_forgotten_with_its_backend() -> None:
    told: list[Mapping[tuple[str], float]] = []
    circuits = Circuits(Clock(), told.append)
    for _ in range(3):
        circuits.of("b").fail()
    assert told == [{("b",): 1.0}]
    circuits.of("b").answer()
    assert told[-1] == {("b",): 0.0}
    circuits.of("c").fail()
    circuits.keep({"c"})
    assert told[-1] == {("c",): 0.0}
