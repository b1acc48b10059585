"""A settings file that changes -> settings in use from the next request on, or one line that says what is wrong."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from gateway.errors import SettingsError
from gateway.server.fixed import changed
from gateway.server.log import LOGGER
from gateway.server.services import Services
from gateway.settings import Settings

LOOK_S: Final = 0.5

Stamp: TypeAlias = tuple[tuple[int, int, int], ...] | None


class Source:
    """Where settings come from: a file, and how it is read (with what the command line sets above it)."""

    def __init__(self, path: Path, load: Callable[[], Settings]) -> None:
        self._path = path
        self.load = load

    def stamp(self, keys: str | None) -> Stamp:
        """Differs once the file, or the one with the keys, was written. None while one of them is missing: it is
        being replaced."""
        try:
            found = [os.stat(path) for path in (self._path, keys) if path is not None]
        except OSError:
            return None
        return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)


class Reloader:
    """Looks at the file twice a second, and at once when asked. A file is read when it has kept still for one look."""

    def __init__(self, services: Services, source: Source, look_s: float = LOOK_S) -> None:
        self._services = services
        self._source = source
        self._look_s = look_s
        self._asked = asyncio.Event()
        self._known = self._stamp()

    def ask(self) -> None:
        """Read the file now, changed or not."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        seen = self._known
        while True:
            try:
                async with asyncio.timeout(self._look_s):
                    await self._asked.wait()
            except TimeoutError:
                pass
            stamp = self._stamp()
            settled = self._services.settings.server.reload and stamp not in (self._known, None) and stamp == seen
            seen = stamp
            if self._asked.is_set() or settled:
                self._asked.clear()
                self._known = stamp
                await self._reload()

    async def _reload(self) -> None:
        services = self._services
        before = services.settings
        try:
            kept = await services.change(self._source.load())
        except SettingsError as error:
            services.metrics.count("gateway_config_reload_failures_total")
            LOGGER.error("settings not reloaded, the old ones stay in use: %s", error.message)
            return
        services.metrics.count("gateway_config_reloads_total")
        LOGGER.info("settings reloaded; changed: %s", ", ".join(changed(before, services.settings)) or "nothing")
        if kept:
            LOGGER.warning("these settings need a restart, and stay as they were: %s", ", ".join(kept))

    def _stamp(self) -> Stamp:
        return self._source.stamp(self._services.settings.server.api_keys_file)
