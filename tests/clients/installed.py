"""Where the installed client programs are, and the gateway that they ask."""

import os
import re
import time
from pathlib import Path
from typing import Final

import httpx

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
        lines = self.written()
        return re.findall(rf" POST {re.escape(path)}(?!/count_tokens).*? status=(\d+)", lines)

    def written(self) -> str:
        """The log with the lines of all requests so far. They are written in order, a moment after the answers: a line
        of the last request says that the others are there."""
        response = httpx.get(f"http://{self.address}/healthz", timeout=30, trust_env=False)
        last = response.headers["x-request-id"]
        end = time.monotonic() + 30
        while last not in (lines := self._log.read_text(encoding="utf-8")):
            assert time.monotonic() < end, "the log lacks the last request"
            time.sleep(0.02)
        return lines
