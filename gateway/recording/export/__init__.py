"""Exports recordings to other forms: HAR for other tools, commands for a shell, a script and a test in Python."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.recording.export.curl import LOCAL, curl_commands, plain_address
from gateway.recording.export.har import har
from gateway.recording.export.python import pytest_module, python_script
from gateway.recording.recording import Recording, write_recording

# Each form of a recording, for a gateway at an address.
EXPORTS: Final[Mapping[str, Callable[[Recording, str], str]]] = {
    "recording": lambda recording, _: write_recording(recording).decode(),
    "har": lambda recording, _: har(recording),
    "curl": curl_commands,
    "python": python_script,
    "pytest": lambda recording, _: pytest_module(recording),
}


def export(recording: Recording, kind: str, url: str = LOCAL) -> str:
    """Returns a recording in one of the forms of `EXPORTS`. What sends its requests sends them to `url`
    (`scheme://host:port`), unless `DRAGOMAN_URL` names another gateway."""
    return EXPORTS[kind](recording, plain_address(url))
