"""Which programs of the system this machine has, for the tests that `make state` runs."""

import os
import shutil
from typing import Final

import pytest

RUN: Final = "make state runs this"


def needs(*programs: str) -> pytest.MarkDecorator:
    """Return the mark of a test that needs these programs of the system."""
    lacking = [name for name in programs if shutil.which(name) is None]
    reason = f"NOT RUN: {', '.join(lacking)} is not installed here" if lacking else ""
    reason = reason if os.environ.get("STATE_SERVERS") else RUN
    return pytest.mark.skipif(bool(reason), reason=reason)
