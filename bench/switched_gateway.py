"""Runs a gateway whose inspector can be switched off and on again while it serves:
`python -m bench.switched_gateway SETTINGS PORT`.

Two processes differ by some per cent, because their memory lies elsewhere; so one process is compared with itself. It
begins with the inspector on; SIGUSR1 switches it off, SIGUSR2 on. While it is off, a request passes the observers that
a gateway has whose settings say so.
"""

import signal
import sys
from pathlib import Path

import msgspec

from gateway.server.api.app import Gateway
from gateway.server.process.run import serve
from gateway.server.telemetry.access_log import AccessLog
from gateway.server.telemetry.request_context import Observers
from gateway.server.telemetry.request_metrics import RequestMetrics
from gateway.settings import load_settings


def main() -> None:
    """Serves until a signal."""
    _, path, port = sys.argv
    settings = load_settings(Path(path))
    server = msgspec.structs.replace(settings.server, port=int(port))
    serve(msgspec.structs.replace(settings, server=server), False, print, prepare=_prepare)


def _prepare(app: Gateway) -> None:
    state = app.gateway_state
    on, off = state.observers, Observers(RequestMetrics(state.metrics), AccessLog(), state.event_bus)
    # Every observer overrides it.
    assert len(on.conclude) == len(off.conclude) + 1, "the inspector is not all that is switched"

    def switch(number: int, frame: object) -> None:
        state.observers = off if number == signal.SIGUSR1 else on

    signal.signal(signal.SIGUSR1, switch)
    signal.signal(signal.SIGUSR2, switch)


if __name__ == "__main__":
    main()
