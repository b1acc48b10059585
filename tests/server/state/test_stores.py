"""Whether a request may use a store, and which: by its key and its header."""

from pathlib import Path

import pytest

from gateway.core.errors import InvalidRequest
from gateway.server.state.store import Put
from gateway.server.state.stores import HEADER, Stores
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import CHAT, Observers, RequestContext
from gateway.settings import KeySettings, Settings, StateSettings

KEYS = {
    "none": KeySettings(state="off"),
    "here": KeySettings(state="memory"),
    "all": KeySettings(state="shared"),
    "*": KeySettings(state="off"),
}

# For a busy machine.
PATIENCE_S = 30.0


def context(key: str, header: str | None = None) -> RequestContext:
    headers = {} if header is None else {HEADER: header.encode()}
    found = RequestContext("POST", "/", CHAT, headers, Observers())
    found.key = key
    return found


@pytest.mark.parametrize(("key", "allowed"), [("none", False), ("here", True), ("all", True), ("-", False)])
async def test_the_settings_of_a_key_decide(key: str, allowed: bool) -> None:
    stores = Stores(Settings(keys=KEYS), Metrics())
    found = stores.of(context(key))
    assert (found is not None) is allowed
    if found is not None:
        assert (found.tenant, found.store) == (key, stores.shared)
    await stores.aclose()


@pytest.mark.parametrize("value", ["off", "OFF", " off"])
async def test_a_client_may_refuse(value: str) -> None:
    stores = Stores(Settings(), Metrics())
    assert stores.of(context("-", header=value)) is None
    assert stores.of(context("-", header="on")) is not None
    assert stores.of(context("-")) is not None


@pytest.mark.parametrize("value", ["", "0", "no", "of", "memory"])
def test_a_word_that_is_not_understood_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequest, match="must be on or off"):
        Stores(Settings(), Metrics()).of(context("-", header=value))


def test_a_client_cannot_allow_what_its_key_does_not() -> None:
    assert Stores(Settings(keys=KEYS), Metrics()).of(context("none", header="on")) is None


def test_a_reload_changes_keys_and_deadline() -> None:
    stores = Stores(Settings(), Metrics())
    stores.change(Settings(keys=KEYS, state=StateSettings(deadline_ms=7)))
    assert stores.of(context("none")) is None
    found = stores.of(context("all"))
    assert found is not None and found._left_s == 0.007


def test_work_in_the_background_waits_as_long_as_a_request_and_250_ms_at_least() -> None:
    stores = Stores(Settings(state=StateSettings(deadline_ms=900)), Metrics())
    assert stores.shared.deadline_s == 0.9
    stores.change(Settings(state=StateSettings(deadline_ms=7)))
    assert stores.shared.deadline_s == 0.25


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_the_stores_hold_is_measured(tmp_path: Path, kind: str) -> None:
    state = StateSettings(store="memory" if kind == "memory" else f"sqlite:{tmp_path / 'state.db'}")
    metrics = Metrics()
    stores = Stores(Settings(keys=KEYS, state=state), metrics)
    for key in ("here", "all"):
        found = stores.of(context(key))
        assert found is not None
        await found.store.put(found.tenant, Put("ops", b"k", b"x" * 1000, 60), within_s=PATIENCE_S)
    await stores._measure()
    gauges = {one.labels: one.value for one in metrics.snapshot().gauges if one.name == "gateway_state_bytes"}
    assert list(gauges) == [("ops",)] and 2000 <= gauges["ops",] <= 4000
    await stores.shared.purge()
    await stores.memory.purge()
    await stores._measure()
    assert [one for one in metrics.snapshot().gauges if one.name == "gateway_state_bytes"] == []
    await stores.aclose()


async def test_what_must_stay_in_memory_never_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    stores = Stores(Settings(keys=KEYS, state=StateSettings(store=f"sqlite:{path}")), Metrics())
    found = stores.of(context("here"))
    assert found is not None and found.store is not stores.shared
    await found.store.put(found.tenant, Put("ops", b"k", b"x", 60), within_s=PATIENCE_S)
    assert not path.exists()
    shared = stores.of(context("all"))
    assert shared is not None
    await shared.store.put(shared.tenant, Put("ops", b"k", b"x", 60), within_s=PATIENCE_S)
    assert path.exists()
    await stores.aclose()
