"""The report of the laboratory, which `dragoman lab --format json` prints."""

from typing import Final

import msgspec

from gateway.demo.lab.event import Api
from gateway.demo.lab.outcome import BAD, Outcome, Verdict

# The version of the report's form.
FORMAT: Final = 1


class Report(msgspec.Struct, frozen=True):
    """What became of each event. `tool` is the tool that was called to read a file, empty: the client offers none."""

    client: str
    api: Api
    title: str
    tool: str
    outcomes: tuple[Outcome, ...]
    format: int = FORMAT

    def having(self, *verdicts: Verdict) -> tuple[Outcome, ...]:
        """Returns the outcomes with one of these verdicts."""
        return tuple(one for one in self.outcomes if one.verdict in verdicts)

    def status(self) -> int:
        """Returns the exit status of the command: 1 where a client hung, or failed without a word."""
        return 1 if self.having(*BAD) else 0
