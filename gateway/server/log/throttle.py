"""Rate-limits a log message to one per second and counts the suppressed ones."""

from typing import Final

PAUSE_S: Final = 1


class LogThrottle:
    """Counts the suppressed messages, so that the next line reports them."""

    __slots__ = ("_due", "_suppressed")

    def __init__(self) -> None:
        self._due = 0.0
        self._suppressed = 0

    def count(self, now: float) -> int:
        """Returns the number of messages since the last line, this one included, when a line is due; else 0."""
        self._suppressed += 1
        if now < self._due:
            return 0
        self._due = now + PAUSE_S
        suppressed, self._suppressed = self._suppressed, 0
        return suppressed
