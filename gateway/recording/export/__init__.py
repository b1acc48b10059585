"""Exports recordings to other forms: HAR for other tools, commands for a shell, a script and a test in Python."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.recording.export.curl import curl_commands
from gateway.recording.export.har import har
from gateway.recording.export.python import pytest_module, python_script
from gateway.recording.recording import Recording, write_recording

EXPORTS: Final[Mapping[str, Callable[[Recording], str]]] = {
    "recording": lambda recording: write_recording(recording).decode(),
    "har": har,
    "curl": curl_commands,
    "python": python_script,
    "pytest": pytest_module,
}


def export(recording: Recording, kind: str) -> str:
    """Returns a recording in one of the forms of `EXPORTS`."""
    return EXPORTS[kind](recording)
