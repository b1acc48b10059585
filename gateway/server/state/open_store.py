"""Opens the store that the settings name."""

import os
from collections.abc import Mapping
from pathlib import Path

from gateway.core.errors import SettingsError
from gateway.server.process.process_identity import process_identity
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import OnEvict, Space, StateStore
from gateway.settings import StateSettings


def open_store(state: StateSettings, on_evict: OnEvict, space_bytes: Mapping[Space, int]) -> StateStore:
    """Returns the store of the settings, which connects when it is first used. `space_bytes` bounds single spaces in
    memory. Raises SettingsError."""
    kind, _, place = (state.store or MemoryStore.name).partition(":")
    max_bytes = int(state.max_mb * 2**20)
    match kind:
        case MemoryStore.name:
            return MemoryStore(max_bytes, on_evict, space_bytes)
        case "sqlite":
            # Not imported where it is not used.
            from gateway.server.state.sqlite import SqliteStore, check_file

            check_file(Path(place))
            return SqliteStore(Path(place), process_identity(os.getpid()), max_bytes, on_evict)
        case _:
            raise SettingsError(f"state.store: this gateway has no store of the kind {kind}")
