"""Opens the store that the settings name."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.core.errors import SettingsError
from gateway.server.state.budget_store import BudgetStore
from gateway.server.state.limit_store import LimitStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.process_identity import process_identity
from gateway.server.state.sealed_store import ChecksumSeal, Seal, SealedStore
from gateway.server.state.state_folder import keys_of
from gateway.server.state.store import OnEvict, Space, StateStore
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import StateSettings, secret

if TYPE_CHECKING:
    from gateway.server.state.valkey.address import ServerAddress

SQLITE: Final = "sqlite"
# The extra of this distribution that installs a package.
EXTRAS: Final = {"valkey": "valkey"}


def open_store(
    state: StateSettings,
    metrics: Metrics,
    environ: Mapping[str, str] = os.environ,
    space_bytes: Mapping[Space, int] | None = None,
) -> StateStore:
    """Returns the store of the settings, which connects when it is first used. `space_bytes` bounds single spaces in
    memory. Raises SettingsError."""
    on_evict = metrics.state_evictions.inc
    shared = open_shared_store(state, on_evict, environ)
    if shared is None:
        return MemoryStore(_max_bytes(state), on_evict, space_bytes)
    return SealedStore(shared, _seal(state, environ, _kind(state) != SQLITE), metrics.state_unreadable.inc)


def open_shared_store(
    state: StateSettings, on_evict: OnEvict, environ: Mapping[str, str] = os.environ
) -> StateStore | None:
    """Returns the file or the server of the settings, whose values stay sealed; None where the settings name memory.
    Raises SettingsError."""
    if _kind(state) == MemoryStore.name:
        return None
    if _kind(state) != SQLITE:
        return _server(state, on_evict, environ)
    # Not imported where it is not used.
    from gateway.server.state.sqlite import SqliteStore, check_file

    check_file(_path(state))
    return SqliteStore(_path(state), process_identity(os.getpid()), _max_bytes(state), on_evict)


def open_limits(
    state: StateSettings, directory: Path | None, environ: Mapping[str, str] = os.environ
) -> LimitStore | None:
    """Returns where the usage of API keys is counted together with other processes: in the store of the settings, else
    in a file of the directory that the workers of this gateway share; None: there is neither. Raises SettingsError."""
    kind = _kind(state)
    if kind not in (MemoryStore.name, SQLITE):
        from gateway.server.state.valkey.limits import ValkeyLimits

        return ValkeyLimits(_address(state, environ))
    path = _path(state) if kind == SQLITE else directory and directory / "limits.db"
    if path is None:
        return None
    from gateway.server.state.sqlite import SqliteLimits

    return SqliteLimits(path, process_identity(os.getpid()), _max_bytes(state))


def open_budgets(state: StateSettings, directory: Path | None, environ: Mapping[str, str] = os.environ) -> BudgetStore:
    """Returns where the budgets of API keys are reserved: in the store of the settings, else in a file of the directory
    that the workers of this gateway share, else in the memory of this process. Raises SettingsError."""
    kind = _kind(state)
    if kind not in (MemoryStore.name, SQLITE):
        from gateway.server.state.valkey.budgets import ValkeyBudgets

        return ValkeyBudgets(_address(state, environ))
    path = _path(state) if kind == SQLITE else directory and directory / "limits.db"
    if path is None:
        from gateway.server.state.memory_budgets import MemoryBudgets

        return MemoryBudgets()
    from gateway.server.state.sqlite import SqliteBudgets

    return SqliteBudgets(path, _max_bytes(state))


def _kind(state: StateSettings) -> str:
    return (state.store or MemoryStore.name).partition(":")[0]


def _path(state: StateSettings) -> Path:
    return Path((state.store or "").partition(":")[2])


def _max_bytes(state: StateSettings) -> int:
    return int(state.max_mb * 2**20)


def _server(state: StateSettings, on_evict: OnEvict, environ: Mapping[str, str]) -> StateStore:
    _require("valkey", "state.store names a server")
    from gateway.server.state.valkey.store import ValkeyStore

    return ValkeyStore(_address(state, environ), on_evict)


def _address(state: StateSettings, environ: Mapping[str, str]) -> "ServerAddress":
    from gateway.server.state.valkey.address import read_address

    return read_address(state.store or "", secret(state.password_env, environ))


def _seal(state: StateSettings, environ: Mapping[str, str], shared: bool) -> Seal:
    """Returns the seal for the values of a store, which others may read where it is `shared`. Raises SettingsError."""
    keys = keys_of(state, environ)
    if state.encrypt is False or not (keys or shared or state.encrypt):
        return ChecksumSeal()
    if not keys:
        raise SettingsError(
            f"state.store keeps contents where others may read them: set the environment variable {state.key_env} to a"
            ' key, as `openssl rand -hex 32` prints one, or write "encrypt": false'
        )
    from gateway.server.state.encryption import EncryptedSeal

    return EncryptedSeal(keys)


def _require(package: str, why: str) -> None:
    if find_spec(package) is None:
        raise SettingsError(
            f'{why}, which needs a package that is not installed: pip install "dragoman[{EXTRAS[package]}]"'
        )
