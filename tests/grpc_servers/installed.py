"""Where `make grpc` has installed the servers, and which of them this machine has."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(os.environ.get("GRPC_SERVERS", ""))
# Programs of the system, which `make grpc` uses where they are installed.
SYSTEM: Final = frozenset({"nghttpx", "nginx", "node"})


def python(environment: str) -> str:
    """Return the interpreter of an environment."""
    return str(FOLDER / environment / "bin" / "python")


def missing(*names: str) -> str:
    """Return the reason for which a test that needs these is skipped, empty if it need not be."""
    if not os.environ.get("GRPC_SERVERS"):
        return "make grpc installs the servers and runs this"
    lacking = [name for name in names if not _has(name)]
    return f"NOT RUN: {', '.join(lacking)} is not installed here" if lacking else ""


def needs(*names: str) -> pytest.MarkDecorator:
    """Return the mark of a test that needs these."""
    reason = missing(*names)
    return pytest.mark.skipif(bool(reason), reason=reason)


def _has(name: str) -> bool:
    if name in SYSTEM:
        return shutil.which(name) is not None
    # Written when everything has been installed.
    return (FOLDER / f".{name}.installed").exists()
