"""Reads settings.json once at start into one frozen Settings; each component receives its part as an argument.

Top level: the policy keys (defaults for every model), then `server`, `limits`, `log`, `tracing`, `state`, `compress`,
`responses`, `keeper`, `vision`, `keys`, `profiles`, `backends`, `models`.
"""

from gateway.settings.check import nearest, similar
from gateway.settings.decode import with_place
from gateway.settings.environment import override_record, override_server, secret
from gateway.settings.model_entry import LIMITS
from gateway.settings.policies import override_policy
from gateway.settings.read import check_options, load_settings, parse_settings, read_settings
from gateway.settings.values import (
    RESTART,
    BackendSettings,
    BudgetSettings,
    Candidate,
    CompressSettings,
    InspectorSettings,
    KeeperSettings,
    KeyCompressSettings,
    KeySettings,
    LimitSettings,
    LogSettings,
    ModelSettings,
    Price,
    RefreshCredential,
    ResponsesSettings,
    ServerSettings,
    Settings,
    StateSettings,
    Timeouts,
    TlsSettings,
    TracingSettings,
    VisionSettings,
)

__all__ = [
    "LIMITS",
    "RESTART",
    "BackendSettings",
    "BudgetSettings",
    "Candidate",
    "CompressSettings",
    "InspectorSettings",
    "KeeperSettings",
    "KeyCompressSettings",
    "KeySettings",
    "LimitSettings",
    "LogSettings",
    "ModelSettings",
    "Price",
    "RefreshCredential",
    "ResponsesSettings",
    "ServerSettings",
    "Settings",
    "StateSettings",
    "Timeouts",
    "TlsSettings",
    "TracingSettings",
    "VisionSettings",
    "check_options",
    "load_settings",
    "nearest",
    "override_policy",
    "override_record",
    "override_server",
    "parse_settings",
    "read_settings",
    "secret",
    "similar",
    "with_place",
]
