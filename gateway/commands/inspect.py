"""Runs `dragoman inspect`: shows a recording on the inspector's page, without a gateway."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import add_settings, settings_if_any

if TYPE_CHECKING:
    from gateway.recording.recording import Recording
    from gateway.server.api.app import Gateway
    from gateway.settings import Settings

HELP: Final = "show a recording on the inspector's page, without a gateway"
# The variable of the key that is made for this page alone.
_KEY: Final = "DRAGOMAN_INSPECT_KEY"


def add_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of `dragoman inspect`."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    add_settings(parser, environ)
    parser.add_argument("--port", default="0", help="the port to serve on (default any free one)")


def inspect(options: argparse.Namespace) -> int:
    """Runs `dragoman inspect`. Raises InvalidRequest and SettingsError."""
    import os
    import secrets

    from gateway.recording.files import load_recording
    from gateway.server.process.run import serve
    from gateway.settings import Settings, override_server, read_settings

    recording = load_recording(options.file)
    known = settings_if_any(options.settings) or Settings()
    # Everybody on this machine can reach the port: the key in the address keeps the recording to its reader.
    os.environ[_KEY] = key = secrets.token_urlsafe(16)
    settings = read_settings(
        {
            "server": {"api_keys_env": None, "reload": False},
            "log": {"file": None, "level": "error"},  # a warning says that there are no models, and none is needed
            "inspector": {"contents": "never", "admin_key_env": _KEY},
        }
    )

    def announce(address: str) -> None:
        print(f"{options.file} is shown on\n  {address}/inspect#key={key}\nCtrl-C ends it", flush=True)

    serve(
        override_server(settings, None, options.port, None),
        False,
        announce,
        prepare=lambda app: _show(app, recording, known),
    )
    return 0


def _show(app: "Gateway", recording: "Recording", known: "Settings") -> None:
    from gateway.inspector.recorded_requests import RecordedRequests

    assert app.gateway_state.inspector is not None  # there is a key
    app.gateway_state.inspector.show(RecordedRequests(recording), known)
