"""Answers are found under their client alone, and a store that fails loses none of a history in silence."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from gateway.core.errors import GatewayError
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.demo.serve import serve_demo
from gateway.dialects.stateful import AnswerRecord
from gateway.server.state import guard
from gateway.server.state.answer_store import AnswerStore, AnswerStores
from gateway.server.state.guarded_store import DEADLINE_S, GuardedStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import Failure, Put
from gateway.server.state.stores import Stores
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import CHAT, Observers, RequestContext
from gateway.settings import ModelSettings, ResponsesSettings, ServerSettings, Settings, StateSettings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.state.faulty_store import FaultyStore, guarded

FAULTS: Final[tuple[Failure, ...]] = ("slow", "down", "full", "invalid")


class Recorder:
    """A record to be stored, and what the answer then says."""

    def __init__(self, record: AnswerRecord) -> None:
        self._record = record
        self.denied: list[Notice] = []
        self.headers = ()

    def record(self, renew_s: float | None) -> AnswerRecord:
        return self._record

    def deny(self, notice: Notice) -> None:
        self.denied.append(notice)

    def feed(self, events: object) -> bytes:
        return b""

    quiet = close = whole = lambda self: b""

    def fail(self, error: GatewayError) -> bytes:
        return b""


def record(*names: str, renewed: Sequence[str] = (), size: int = 100, links: int = 1) -> AnswerRecord:
    return AnswerRecord(tuple((name, name.encode()) for name in names), tuple(renewed), size, links)


def context() -> RequestContext:
    return RequestContext("POST", "/", CHAT, {}, Observers())


async def stored(answers: AnswerStore, made: AnswerRecord) -> list[Notice]:
    recorder = Recorder(made)
    await answers.record(recorder, context())
    return recorder.denied


async def found(answers: AnswerStore, *names: str) -> Mapping[str, bytes | None]:
    return await answers.find(lambda known: [name for name in names if name not in known])


async def test_entries_are_found_by_their_client_alone() -> None:
    store = guarded(MemoryStore(2**20, lambda *_: None))
    mine, theirs = AnswerStore(store, "mine", 60), AnswerStore(store, "theirs", 60)
    assert await stored(mine, record("a", "b")) == []
    assert await found(mine, "a", "b", "c") == {"a": b"a", "b": b"b", "c": None}
    assert await found(theirs, "a") == {"a": None}
    await theirs.delete(["a"])
    assert await found(mine, "a") == {"a": b"a"}
    await mine.delete(["a"])
    assert await found(mine, "a") == {"a": None}


async def test_an_entry_may_name_further_ones() -> None:
    answers = AnswerStore(guarded(MemoryStore(2**20, lambda *_: None)), "-", 60)
    await stored(answers, record("a", "b"))

    def missing(known: Mapping[str, bytes | None]) -> Sequence[str]:
        return [name for name in ("a", "b")[: len(known) + 1] if name not in known]

    assert await answers.find(missing) == {"a": b"a", "b": b"b"}


@pytest.mark.parametrize(("deadline_ms", "takes_s"), [(20, 60), (10_000, 2 * DEADLINE_S)])
async def test_a_slow_store_has_the_time_of_the_settings_where_that_is_longer(
    deadline_ms: float, takes_s: float
) -> None:
    class Slow(MemoryStore):
        async def put(self, tenant: str, *puts: Put) -> bool:
            await asyncio.sleep(takes_s)
            return await super().put(tenant, *puts)

    settings = Settings(state=StateSettings(deadline_ms=deadline_ms))
    stores = Stores(settings, Metrics())
    stores.shared = stores.memory = guarded(Slow(2**20, lambda *_: None))
    stores.change(settings)
    answers = AnswerStores(settings, stores).of(context())
    assert answers is not None
    notices = await stored(answers, record("a"))
    assert [notice.rule for notice in notices] == ["RESPONSE_NOT_STORED"] * (deadline_ms < 1000 * DEADLINE_S)


async def test_an_answer_is_stored_whole_or_not_at_all() -> None:
    answers = AnswerStore(guarded(MemoryStore(2**20, lambda *_: None)), "-", 60)
    large = AnswerRecord((("input", b"i"), ("response", b"r" * 2**20)), (), 2**20, 1)
    (notice,) = await stored(answers, large)
    assert (notice.rule, notice.action, notice.level) == ("RESPONSE_NOT_STORED", "failed", "warning")
    assert await found(answers, "input", "response") == {"input": None, "response": None}


async def test_what_is_renewed_lives_on() -> None:
    now = 0.0
    answers = AnswerStore(guarded(MemoryStore(2**20, lambda *_: None, clock=lambda: now)), "-", 60)
    await stored(answers, record("first"))
    now = 50.0
    await stored(answers, record("second", renewed=["first"]))
    now = 100.0
    assert await found(answers, "first", "second") == {"first": b"first", "second": b"second"}
    now = 111.0
    assert await found(answers, "first", "second") == {"first": None, "second": None}


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (record("a", links=513), "513 responses; the most is 512"),
        (record("a", size=8 * 2**20 + 1), "8388609 bytes; the most is 8388608"),
    ],
)
async def test_a_history_has_a_largest_size(made: AnswerRecord, why: str) -> None:
    answers = AnswerStore(guarded(MemoryStore(2**20, lambda *_: None)), "-", 60)
    (notice,) = await stored(answers, made)
    assert why in notice.detail
    assert await found(answers, "a") == {"a": None}


async def test_the_largest_history_is_stored() -> None:
    answers = AnswerStore(guarded(MemoryStore(2**20, lambda *_: None)), "-", 60)
    assert await stored(answers, record("a", size=8 * 2**20, links=512)) == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_store_that_fails_is_told(fault: Failure) -> None:
    store = FaultyStore()
    answers = AnswerStore(guarded(store), "-", 60)
    assert await stored(answers, record("a")) == []
    store.fault = fault
    (notice,) = await stored(answers, record("b"))
    with pytest.raises(GatewayError) as caught:
        await found(answers, "a")
    assert notice.rule == "RESPONSE_NOT_STORED"
    assert (caught.value.status, caught.value.code) == (503, "store_unavailable")
    assert caught.value.headers == {"retry-after": "1"}


def several(workers: int, store: bool = True) -> AnswerStores:
    models = {"m": ModelSettings("b", None, Policy(), responses=ResponsesSettings(store=store))}
    settings = Settings(server=ServerSettings(workers=workers), models=models)
    return AnswerStores(settings, Stores(settings, Metrics()))


@pytest.mark.parametrize(("workers", "kept"), [(1, True), (2, False)])
async def test_what_another_worker_would_not_find_is_not_stored(workers: int, kept: bool) -> None:
    answers = several(workers)
    notices: list[Notice] = []
    assert (answers.for_answer(answers.of(context()), ResponsesSettings(), notices) is not None) is kept
    assert answers.lost_between_workers is not kept
    assert [(notice.rule, notice.level) for notice in notices] == [("RESPONSE_NOT_STORED", "debug")] * (not kept)
    assert not several(workers, store=False).lost_between_workers


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    async with serve_demo("chat") as demo:
        settings: dict[str, Any] = {
            "backends": {"b": {"adapter": "openai_chat", "base_url": demo.base_url}},
            "models": {
                "m": {"backend": "b", "name": "demo-chat"},
                "off": {"backend": "b", "name": "demo-chat", "responses": {"store": False}},
            },
        }
        async with running_gateway(settings) as opened:
            yield opened


async def respond(gateway: RunningGateway, **fields: Any) -> httpx.Response:
    headers = {"x-dragoman-explain": "1"}
    return await gateway.client.post("/v1/responses", json={"model": "m", "input": "Hello", **fields}, headers=headers)


def use(gateway: RunningGateway, store: MemoryStore) -> GuardedStore:
    """Lets a running gateway use another store."""
    used = gateway.app.gateway_state.stores.shared = guarded(store)
    return used


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
async def test_an_answer_is_sent_while_the_store_fails(
    gateway: RunningGateway, fault: Failure, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_S", 0.05)
    store = FaultyStore()
    use(gateway, store)
    first = (await respond(gateway)).json()
    assert first["store"] is True
    store.fault = fault
    answered = await respond(gateway, stream=streams)
    assert answered.status_code == 200 and "scripted" in answered.text
    last = answered.text.rpartition("response.completed")[2] if streams else answered.text
    assert '"store":false' in last and "RESPONSE_NOT_STORED" in last
    refused = await respond(gateway, previous_response_id=first["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_unavailable")
    assert (await gateway.client.get(f"/v1/responses/{first['id']}")).status_code == 503
    assert (await gateway.client.delete(f"/v1/responses/{first['id']}")).status_code == 503
    store.fault = None
    while (again := await respond(gateway, previous_response_id=first["id"])).status_code == 503:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert again.status_code == 200


async def test_a_request_that_continues_a_history_asks_the_store_three_times(gateway: RunningGateway) -> None:
    """For the response before it, for the items of all others, and to store its own answer."""
    store = FaultyStore()
    use(gateway, store)
    previous = None
    for length in range(6):
        asked = store.asked
        previous = (await respond(gateway, previous_response_id=previous)).json()["id"]
        assert store.asked - asked == 1 + min(length, 2)


async def test_the_settings_of_a_model_decide(gateway: RunningGateway) -> None:
    first = (await respond(gateway)).json()
    kept, unkept = [
        (await respond(gateway, model=model, previous_response_id=first["id"])).json() for model in ("m", "off")
    ]
    assert (kept["store"], unkept["store"]) == (True, False)
    assert [notice["rule"] for notice in unkept["dragoman"]["diagnostics"]].count("RESPONSE_NOT_STORED") == 1
    assert (await gateway.client.get(f"/v1/responses/{unkept['id']}")).status_code == 404


async def test_codex_leaves_nothing(gateway: RunningGateway) -> None:
    store = FaultyStore()
    use(gateway, store)
    assert (await respond(gateway, store=False, include=["reasoning.encrypted_content"])).json()["store"] is False
    assert store.asked == 0, "the store is not even asked"
