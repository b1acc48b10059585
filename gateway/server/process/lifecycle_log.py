"""Logs the lifecycle of the whole gateway: it serves, it stops, it has stopped.

One process writes these lines: the supervisor where one exists.
"""

import signal

from gateway.server.log.logger import LOGGER
from gateway.server.upstream.transport import gateway_version
from gateway.settings import Settings
from gateway.settings.source import SettingsSource


def log_start(settings: Settings, source: SettingsSource | None, address: str) -> None:
    """Logs the address at which requests are accepted. Without a source the settings are built in."""
    LOGGER.info(
        "started version=%s settings=%s address=%s workers=%d models=%r",
        gateway_version(),
        "-" if source is None else source.path,
        address,
        settings.server.workers,
        ", ".join(settings.models),
    )


def log_stop(settings: Settings, number: int, at_once: bool) -> None:
    """Logs that a signal ended the service; `at_once`: it was not the first signal."""
    name = signal.Signals(number).name
    if at_once:
        LOGGER.warning("stopping at once signal=%s", name)
    else:
        LOGGER.info(
            "stopping signal=%s graceful_shutdown_timeout_s=%g; a second signal stops at once",
            name,
            settings.server.graceful_shutdown_timeout_s,
        )


def log_end() -> None:
    """Logs that no process serves any more."""
    LOGGER.info("stopped")
