"""Exports recordings to other forms: HAR for other tools, curl commands for a shell."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.recording.export.curl import curl_commands
from gateway.recording.export.har import har
from gateway.recording.recording import Recording, write_recording

EXPORTS: Final[Mapping[str, Callable[[Recording], str]]] = {
    "recording": lambda recording: write_recording(recording).decode(),
    "har": har,
    "curl": curl_commands,
}


def export(recording: Recording, kind: str) -> str:
    """Returns a recording in one of the forms of `EXPORTS`."""
    return EXPORTS[kind](recording)
