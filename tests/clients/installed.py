"""Where the installed client programs are, and the gateway that they ask."""

import os
import re
from pathlib import Path
from typing import Final

# Where the programs are installed; without it, they are not run.
CLIENTS: Final = os.environ.get("CLIENTS", "")
PROGRAMS: Final = Path(CLIENTS)
# The interpreter with the SDKs of the other dialects.
SDKS: Final = str(PROGRAMS / "sdks" / "bin" / "python3")


class LoggedGateway:
    """A started `dragoman serve` with the shipped settings on a free port."""

    def __init__(self, folder: Path, address: str) -> None:
        self.address = address
        self._log = folder / "logs" / "gateway.log"

    def answered(self, path: str) -> list[str]:
        """The statuses of all answers so far at paths that begin so."""
        lines = self._log.read_text(encoding="utf-8")
        return re.findall(rf" POST {re.escape(path)}(?!/count_tokens).*? status=(\d+)", lines)
