"""Where Chromium is, what drives it, and what judges its pages."""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Final

import pytest

# Where the Makefile has put the library and the judge.
TOOLS: Final = os.environ.get("BROWSER_TOOLS", "")
AXE: Final = Path(TOOLS) / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM: Final = shutil.which("chromium")

# Nothing of the browser itself asks the network, and each name but that of this machine is unknown to it.
# REBOUND is the name of a stranger who lets it lead here.
REBOUND: Final = "stranger.example"
FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-quic"),
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def _missing() -> str:
    if not TOOLS:
        return "make browser installs what this needs, and runs it"
    named = {
        "chromium": CHROMIUM,
        "playwright": importlib.util.find_spec("playwright"),
        "axe-core": AXE.is_file(),
    }
    absent = ", ".join(name for name, found in named.items() if not found)
    return f"NOT RUN: {absent} could not be installed here" if absent else ""


MISSING: Final = _missing()
# The marks of every module of this folder: one event loop has the browser, the gateways and the tests.
BROWSER: Final = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.asyncio(loop_scope="session"),
]
