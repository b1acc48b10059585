"""Reads settings from the command line and the environment: the server's address, and the secrets."""

import os
from collections.abc import Mapping

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings.check import read_struct
from gateway.settings.values import ServerSettings, Settings


def override_server(settings: Settings, host: str | None, port: str | None, workers: str | None = None) -> Settings:
    """Returns the settings with the command line's or the environment's server values. Raises SettingsError."""
    changes: dict[str, Json] = {}
    if host:
        changes["host"] = host
    if port is not None:
        if not (port.isascii() and port.isdigit()):
            raise SettingsError(f"the port must be a number from 0 to 65535; it is {port!r}")
        changes["port"] = int(port[:9])
    if workers is not None:
        if not (workers.isascii() and workers.isdigit()):
            raise SettingsError(f"the number of workers must be a number from 1 to 256; it is {workers!r}")
        changes["workers"] = int(workers[:9])
    if not changes:
        return settings
    server = read_struct({**msgspec.to_builtins(settings.server), **changes}, ServerSettings, "server")
    return msgspec.structs.replace(settings, server=server)


def override_record(settings: Settings, folder: str | None) -> Settings:
    """Returns the settings with the command line's folder for recordings."""
    if folder is None:
        return settings
    return msgspec.structs.replace(settings, inspector=msgspec.structs.replace(settings.inspector, record=folder))


def secret(variable: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the secret in a setting's environment variable; None when it names none. Raises SettingsError."""
    if variable is None:
        return None
    value = environ.get(variable, "").strip()
    if not value:
        raise SettingsError(f"the environment variable {variable} is named in the settings but not set")
    return value
