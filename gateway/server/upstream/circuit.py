"""Leaves a backend alone for a moment that has failed several times in a row, where another model can answer instead.

- `CLOSED`: the backend is asked.
- `OPEN`: it is not asked until its pause is over.
- `PROBING`: the pause is over, and one request asks it. Others are let through only when another pause has passed: a
  probe whose client leaves says nothing.

The inputs: `answered` is the first event of an answer; `failed` a failure that is not the last of `MOST_FAILURES` in a
row, and `tripped` the one that is; `probed` the request that is let through when a pause is over. Requests that were
under way when the circuit opened may still end in `OPEN`.

The first pause has one second, and each failed probe doubles it, up to 30. Failures count only of requests that may go
on with another model, and by each worker: a backend without such models is always asked.
"""

from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

CircuitInput: TypeAlias = Literal["answered", "failed", "tripped", "probed"]

MOST_FAILURES: Final = 3
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


class CircuitState(IntEnum):
    """The state of the circuit of one backend."""

    CLOSED = 0
    OPEN = 1
    PROBING = 2


# An input without an entry in the row of the present state cannot occur in it: a KeyError is a bug.
CIRCUIT_TRANSITIONS: Final[Mapping[CircuitState, Mapping[CircuitInput, CircuitState]]] = {
    CircuitState.CLOSED: {
        "answered": CircuitState.CLOSED,
        "failed": CircuitState.CLOSED,
        "tripped": CircuitState.OPEN,
    },
    CircuitState.OPEN: {
        "answered": CircuitState.CLOSED,
        "failed": CircuitState.OPEN,
        "probed": CircuitState.PROBING,
    },
    CircuitState.PROBING: {
        "answered": CircuitState.CLOSED,
        "failed": CircuitState.OPEN,
        "probed": CircuitState.PROBING,
    },
}


class Circuit:
    """The circuit of one backend. All times are those of `clock`, in seconds."""

    def __init__(self, clock: Callable[[], float], on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._on_change = on_change
        self._failures = 0
        self._pause = FIRST_PAUSE_S
        self._due = 0.0
        self.state = CircuitState.CLOSED

    @property
    def lets_through(self) -> bool:
        """Whether a request may ask the backend now."""
        return self.state is CircuitState.CLOSED or self._clock() >= self._due

    def ask(self) -> None:
        """Records that a request which is let through asks the backend."""
        if self.state is not CircuitState.CLOSED:
            self._due = self._clock() + self._pause
            self._enter("probed")

    def answer(self) -> None:
        """Records the first event of an answer."""
        self._failures, self._pause = 0, FIRST_PAUSE_S
        self._enter("answered")

    def fail(self) -> None:
        """Records a failure of the backend."""
        if self.state is CircuitState.CLOSED:
            self._failures += 1
            if self._failures < MOST_FAILURES:
                self._enter("failed")
                return
            self._due = self._clock() + self._pause
            self._enter("tripped")
            return
        if self.state is CircuitState.PROBING:
            self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
            self._due = self._clock() + self._pause
        self._enter("failed")

    def _enter(self, given: CircuitInput) -> None:
        before, self.state = self.state, CIRCUIT_TRANSITIONS[self.state][given]
        if self.state is not before:
            self._on_change()


class Circuits:
    """The circuits of all backends, by name. `report` is told which backends have one that is not closed (1), and which
    had (0)."""

    def __init__(self, clock: Callable[[], float], report: Callable[[Mapping[tuple[str], float]], None]) -> None:
        self._clock = clock
        self._report = report
        self._circuits: dict[str, Circuit] = {}

    def of(self, backend: str) -> Circuit:
        """Returns the circuit of a backend."""
        found = self._circuits.get(backend)
        if found is None:
            found = self._circuits[backend] = Circuit(self._clock, self._tell)
        return found

    def keep(self, backends: Collection[str]) -> None:
        """Forgets the circuits of backends that the settings no longer have."""
        self._circuits = {name: circuit for name, circuit in self._circuits.items() if name in backends}
        self._tell()

    def _tell(self) -> None:
        self._report({(name,): float(one.state is not CircuitState.CLOSED) for name, one in self._circuits.items()})
