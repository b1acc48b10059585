"""Stops asking a store that fails: nothing waits for it until a ping in the background has succeeded."""

from typing import Final

MOST_FAILURES: Final = 3
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


class Circuit:
    """Closed while the store works; `MOST_FAILURES` failures in a row open it. `failures` counts all of them."""

    def __init__(self) -> None:
        self.open = False
        self.failures = 0
        self._in_a_row = 0
        self._pause_s = FIRST_PAUSE_S

    def succeed(self) -> None:
        """An operation or a ping has succeeded."""
        self.open = False
        self._in_a_row = 0
        self._pause_s = FIRST_PAUSE_S

    def fail(self, failures: int) -> bool:
        """An operation has failed, which began when there had been so many `failures`. Those that were under way
        together have failed once. Returns whether this has opened the circuit."""
        if failures != self.failures:
            return False
        self.failures += 1
        self._in_a_row += 1
        opens = not self.open and self._in_a_row >= MOST_FAILURES
        self.open |= opens
        return opens

    def next_pause(self) -> float:
        """Returns the seconds to wait before the next ping."""
        pause, self._pause_s = self._pause_s, min(2 * self._pause_s, LONGEST_PAUSE_S)
        return pause
