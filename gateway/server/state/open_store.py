"""Opens the store that the settings name."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.core.errors import SettingsError
from gateway.server.process.process_identity import process_identity
from gateway.server.state.limit_store import LimitStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.sealed_store import SealedStore
from gateway.server.state.sealing import ChecksumSeal, Seal
from gateway.server.state.store import Space, StateStore
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings, secret

if TYPE_CHECKING:
    from gateway.server.state.valkey.address import ServerAddress

# The extra of this distribution that installs a package.
EXTRAS: Final = {"cryptography": "encrypt", "valkey": "valkey"}


def open_store(
    state: StateSettings,
    metrics: Metrics,
    environ: Mapping[str, str] = os.environ,
    space_bytes: Mapping[Space, int] | None = None,
) -> StateStore:
    """Returns the store of the settings, which connects when it is first used. `space_bytes` bounds single spaces in
    memory. Raises SettingsError."""
    max_bytes, on_evict = int(state.max_mb * 2**20), metrics.state_evictions.inc
    kind, _, place = (state.store or MemoryStore.name).partition(":")
    if kind == MemoryStore.name:
        return MemoryStore(max_bytes, on_evict, space_bytes)
    if kind != "sqlite":
        return SealedStore(_server(state, metrics, environ), _seal(state, environ, True), metrics.state_unreadable.inc)
    # Not imported where it is not used.
    from gateway.server.state.sqlite import SqliteStore, check_file

    check_file(Path(place))
    file = SqliteStore(Path(place), process_identity(os.getpid()), max_bytes, on_evict)
    return SealedStore(file, _seal(state, environ, False), metrics.state_unreadable.inc)


def open_limits(
    state: StateSettings, directory: Path | None, environ: Mapping[str, str] = os.environ
) -> LimitStore | None:
    """Returns where the usage of API keys is counted together with other processes: in the store of the settings, else
    in a file of the directory that the workers of this gateway share; None: there is neither. Raises SettingsError."""
    kind, _, place = (state.store or MemoryStore.name).partition(":")
    if kind not in (MemoryStore.name, "sqlite"):
        from gateway.server.state.valkey.limits import ValkeyLimits

        return ValkeyLimits(_address(state, environ))
    path = Path(place) if kind == "sqlite" else directory and directory / "limits.db"
    if path is None:
        return None
    from gateway.server.state.sqlite import SqliteLimits

    return SqliteLimits(path, process_identity(os.getpid()), int(state.max_mb * 2**20))


def _server(state: StateSettings, metrics: Metrics, environ: Mapping[str, str]) -> StateStore:
    _require("valkey", "state.store names a server")
    from gateway.server.state.valkey.store import ValkeyStore

    return ValkeyStore(_address(state, environ), metrics.state_evictions.inc)


def _address(state: StateSettings, environ: Mapping[str, str]) -> "ServerAddress":
    from gateway.server.state.valkey.address import read_address

    return read_address(state.store or "", secret(state.password_env, environ))


def _seal(state: StateSettings, environ: Mapping[str, str], shared: bool) -> Seal:
    """Returns what seals the values of a store, which others may read where it is `shared`. Raises SettingsError."""
    keys = [key for part in environ.get(state.key_env, "").split(",") if (key := part.strip())]
    if state.encrypt is False or not (keys or shared or state.encrypt):
        return ChecksumSeal()
    if not keys:
        raise SettingsError(
            f"state.store keeps contents where others may read them: set the environment variable {state.key_env} to a"
            ' key, as `openssl rand -hex 32` prints one, or write "encrypt": false'
        )
    _require("cryptography", "state is encrypted")
    from gateway.server.state.encryption import EncryptedSeal

    return EncryptedSeal(keys)


def _require(package: str, why: str) -> None:
    if find_spec(package) is None:
        raise SettingsError(
            f'{why}, which needs a package that is not installed: pip install "dragoman[{EXTRAS[package]}]"'
        )
