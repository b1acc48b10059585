"""Applies a changed settings file from the next request on, or logs one line that states the error."""

import asyncio
from typing import Final

from gateway.core.errors import SettingsError
from gateway.server.api.gateway_state import GatewayState
from gateway.server.log.logger import LOGGER
from gateway.settings import with_place
from gateway.settings.reload_policy import changed
from gateway.settings.source import SettingsSource, Stamp

LOOK_S: Final = 0.5


class Reloader:
    """Checks the file twice a second, and at once on request. A changed file is read when two checks in a row found it
    the same.

    `logs`: the result is logged and counted, which one process does for all that read the same file."""

    def __init__(
        self, gateway_state: GatewayState, source: SettingsSource, look_s: float = LOOK_S, logs: bool = True
    ) -> None:
        self._state = gateway_state
        self._source = source
        self._logs = logs
        self._look_s = look_s
        self._requested = asyncio.Event()
        self._known = self._stamp()

    def request_reload(self) -> None:
        """Reads the file now, changed or not."""
        self._requested.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        seen = self._known
        while True:
            try:
                async with asyncio.timeout(self._look_s):
                    await self._requested.wait()
            except TimeoutError:
                pass
            stamp = self._stamp()
            unchanged = self._state.settings.server.reload and stamp not in (self._known, None) and stamp == seen
            seen = stamp
            if self._requested.is_set() or unchanged:
                self._requested.clear()
                self._known = stamp
                await self._reload()

    async def _reload(self) -> None:
        gateway_state = self._state
        before, keys = gateway_state.settings, gateway_state.keys
        try:
            # In a thread: the settings may name files that a compiler has to read.
            kept = await gateway_state.change(await asyncio.to_thread(self._source.load))
        except SettingsError as error:
            if self._logs:
                gateway_state.metrics.config_reload_failures.inc()
                mistake = with_place(self._source.path, error.message)
                LOGGER.error("settings not reloaded, the old ones stay in use: %s", mistake)
            return
        if not self._logs:
            return
        gateway_state.metrics.config_reloads.inc()
        found = [*changed(before, gateway_state.settings)]
        if others := gateway_state.keys.changes_from(keys):
            found.append(f"client keys ({others})")
        LOGGER.info("settings reloaded; changed: %s", ", ".join(found) or "nothing")
        if kept:
            LOGGER.warning("these settings need a restart, and stay as they were: %s", ", ".join(kept))

    def _stamp(self) -> Stamp:
        return self._source.stamp(self._state.settings.server.api_keys_file)
