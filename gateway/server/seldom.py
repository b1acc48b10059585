"""Things that may happen thousands of times a second -> one log line a second, which tells how many there were."""

from typing import Final

PAUSE_S: Final = 1


class Seldom:
    """Counts what is not told, so that nothing is kept secret for long."""

    __slots__ = ("_due", "_untold")

    def __init__(self) -> None:
        self._due = 0.0
        self._untold = 0

    def tell(self, now: float) -> int:
        """How many there were since the last line, this one included, when it is time for a line; else 0."""
        self._untold += 1
        if now < self._due:
            return 0
        self._due = now + PAUSE_S
        untold, self._untold = self._untold, 0
        return untold
