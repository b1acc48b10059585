"""Opens the store that the settings name."""

from gateway.core.errors import SettingsError
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import OnEvict, StateStore
from gateway.settings import StateSettings


def open_store(state: StateSettings, on_evict: OnEvict) -> StateStore:
    """Returns the store of the settings, which connects when it is first used. Raises SettingsError."""
    if state.store not in (None, "memory"):
        raise SettingsError("state.store: this gateway has only the store memory")
    return MemoryStore(int(state.max_mb * 2**20), on_evict)
