"""Lists the settings that a running gateway uses, for `dragoman config show --running`."""

from typing import Any

import msgspec

from gateway.registry import native_backends
from gateway.server.api.gateway_state import GatewayState
from gateway.server.upstream.transport import gateway_version
from gateway.settings.flat_values import flat_values


class RunningSettings(msgspec.Struct, frozen=True):
    """The values in use by their paths, and the keys whose values in the file wait for a restart. `reloads`: a change
    of the file is read while the gateway runs."""

    version: str
    values: dict[str, Any]  # JSON
    waiting: tuple[str, ...]
    reloads: bool


def running_settings(gateway_state: GatewayState) -> RunningSettings:
    """Returns the settings in use by this process."""
    settings = gateway_state.settings.on(native_backends(gateway_state.backends.adapters))
    return RunningSettings(gateway_version(), flat_values(settings), gateway_state.waiting, settings.server.reload)
