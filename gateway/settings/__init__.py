"""settings.json -> one frozen Settings, read once at start; every part gets its slice as an argument.

Top level: the policy keys (defaults for every model), then `server`, `limits`, `log`, `tracing`, `keys`,
`profiles`, `backends`, `models`.
"""

from gateway.settings.environment import override_server, secret
from gateway.settings.read import check_options, load_settings, override_policy, parse_settings, read_settings
from gateway.settings.values import (
    BackendSettings,
    KeySettings,
    LimitSettings,
    LogSettings,
    ModelSettings,
    RefreshCredential,
    ServerSettings,
    Settings,
    Timeouts,
    TracingSettings,
)

__all__ = [
    "BackendSettings",
    "KeySettings",
    "LimitSettings",
    "LogSettings",
    "ModelSettings",
    "RefreshCredential",
    "ServerSettings",
    "Settings",
    "Timeouts",
    "TracingSettings",
    "check_options",
    "load_settings",
    "override_policy",
    "override_server",
    "parse_settings",
    "read_settings",
    "secret",
]
