"""Processes spend what they have reserved: together never more than a budget, whatever fails."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import GatewayError
from gateway.server.access.budgets import MOST, Amount
from gateway.server.state import guard
from gateway.server.state.budget_share import Charge
from gateway.server.state.budget_store import ALIVE_S
from gateway.server.state.budgets import HELD_S, REPEAT_S, Budgets
from gateway.server.state.sqlite import SqliteBudgets
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import BudgetSettings, KeySettings
from tests.server.state.budget_stores import ScriptedBudgets, SharedBudgets

DAY: Final = {"a": KeySettings(budget=BudgetSettings(tokens_per_day=1000))}
# In the middle of a day.
NOON: Final = 1_800_000_000.0 // 86400 * 86400 + 43200


class Process:
    """One process with the budgets of the keys `keys`."""

    def __init__(self, shared: SharedBudgets, name: str, keys: dict[str, KeySettings] = DAY) -> None:
        self.shared = shared
        self.store = ScriptedBudgets(shared, name)
        self.metrics = Metrics()
        self.budgets = Budgets(lambda: self.store, lambda: 5.0, self.metrics, lambda: shared.now)
        self.budgets.change(keys)

    async def charge(self, tokens: int, key: str = "a", micros: int = 0) -> Charge:
        return await self.budgets.charge(key, Amount(tokens, micros))

    def settle(self, charge: Charge, tokens: int) -> None:
        self.budgets.settle("a", charge, Amount(tokens))

    async def refused(self, tokens: int) -> GatewayError:
        with pytest.raises(GatewayError) as raised:
            await self.charge(tokens)
        return raised.value

    async def tick(self) -> None:
        """Let time pass until statements are due, and wait for them."""
        self.shared.now += REPEAT_S
        self.budgets.tick(self.shared.now)
        await self.settled()

    async def settled(self) -> None:
        """Wait for what runs in the background."""
        tasks = [known.task for known in self.budgets._keys.values() if known.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    def refusals(self) -> dict[str, float]:
        return {sample.labels[2]: sample.value for sample in self.metrics.budget_refusals.samples()}

    def unspent(self) -> int:
        return sum(share.unspent for known in self.budgets._keys.values() for share in known.shares.values())


@pytest.fixture
def shared() -> SharedBudgets:
    shared = SharedBudgets()
    shared.now = NOON
    return shared


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that was left alone is asked again at once."""
    monkeypatch.setattr(guard, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(guard, "LONGEST_PAUSE_S", 0.001)


@pytest.fixture
async def two(shared: SharedBudgets) -> AsyncIterator[tuple[Process, Process]]:
    pair = Process(shared, "1"), Process(shared, "2")
    yield pair
    for one in pair:
        one.store.fails = False
        one.store.gate.set()
        await one.budgets.aclose()


async def test_a_share_is_spent_without_a_question(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    await one.charge(10)
    assert one.store.calls == 1
    for _ in range(10):
        await one.charge(10)
    await one.settled()
    assert one.store.calls == 1 and shared.total() == 250
    # From half of the share on more is reserved, behind the requests.
    for _ in range(3):
        await one.charge(10)
    one.store.gate.clear()
    await one.charge(10)
    one.store.gate.set()
    await one.settled()
    assert one.store.calls == 2 and shared.total() > 250


async def test_the_whole_budget_can_be_spent_and_nothing_more(two: tuple[Process, Process]) -> None:
    """By requests of a size that no share is a multiple of, and with the last ones of the exact rest."""
    spent, held, last = 0, 0, 0
    for turn in range(400):
        one = two[turn % 2]
        try:
            await one.charge(7)
            spent += 7
        except GatewayError as error:
            if (last := error.status) == 429:
                break
            held += 1
            for each in two:
                await each.tick()
    assert last == 429 and spent == 994
    assert held <= 4
    for each in two:
        await each.tick()
    await two[0].charge(6)
    assert (await two[0].refused(1)).status == (await two[1].refused(1)).status == 429


async def test_what_a_request_needs_is_given_back_by_the_others(two: tuple[Process, Process]) -> None:
    one, other = two
    await other.charge(100)
    await other.settled()
    assert other.unspent() > 100
    error = await one.refused(800)
    assert (error.status, error.code, error.headers["retry-after"]) == (503, "budget_unavailable", str(HELD_S))
    assert one.refusals() == {"held": 1}
    # The other one learns of it with its next statement, and gives it back with the one behind.
    await other.tick()
    shares = [share.unspent for known in other.budgets._keys.values() for share in known.shares.values()]
    if any(shares):
        other.budgets.tick(one.shared.now + 1)
        await other.settled()
    assert other.unspent() == 0
    await one.charge(800)
    assert one.shared.total() <= 1000


async def test_what_is_not_left_is_refused_for_good_and_not_asked_again(two: tuple[Process, Process]) -> None:
    one, other = two
    await other.charge(900)
    await other.settled()
    error = await one.refused(200)
    assert (error.status, error.code) == (429, "insufficient_quota")
    assert error.headers == {"x-should-retry": "false", "retry-after": "43200"}
    calls = one.store.calls
    for _ in range(5):
        assert (await one.refused(200)).status == 429
    assert one.store.calls == calls
    # Less may be there.
    await one.charge(50)
    one.shared.now += 1
    assert (await one.refused(200)).status == 429
    assert one.store.calls > calls


async def test_more_than_the_whole_budget_is_refused_without_a_question(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    error = await one.refused(1001)
    assert error.status == 429 and "whole budget" in error.message and one.store.calls == 0
    assert one.refusals() == {"spent": 1}


async def test_while_the_store_fails_a_share_is_spent_and_no_more(two: tuple[Process, Process]) -> None:
    one, other = two
    await one.charge(10)
    await other.charge(10)
    for each in two:
        await each.settled()
        each.store.fails = True
    admitted = 0
    for each in two:
        while True:
            try:
                await each.charge(10)
                admitted += 10
            except GatewayError as error:
                assert (error.status, error.code) == (503, "budget_unavailable")
                break
    assert admitted > 100
    assert 20 + admitted <= one.shared.total() <= 1000
    for each in two:
        each.store.fails = False
        await asyncio.wait_for(_until_admitted(each), 5)
    assert one.shared.total() <= 1000


async def _until_admitted(one: Process) -> None:
    while True:
        try:
            await one.charge(10)
            return
        except GatewayError:
            await asyncio.sleep(0.001)


async def test_the_rest_of_a_killed_process_is_lost_and_what_it_spent_is_counted(shared: SharedBudgets) -> None:
    one, other = Process(shared, "1"), Process(shared, "2")
    await one.charge(100)
    await one.settled()
    lost = shared.total()
    # It is killed here. What it held counts as spent once it has been silent.
    shared.now += ALIVE_S
    spent = 0
    while True:
        try:
            await other.charge(10)
            spent += 10
        except GatewayError as error:
            assert error.status == 429
            break
        await other.settled()
    assert spent == (1000 - lost) // 10 * 10


async def test_what_a_stopped_process_held_is_there_for_the_others(shared: SharedBudgets) -> None:
    one, other = Process(shared, "1"), Process(shared, "2")
    await one.charge(100)
    await one.budgets.aclose()
    assert one.store.closed and shared.total() == 100
    await other.charge(900)


async def test_use_replaces_the_estimate_and_may_exceed_the_budget(two: tuple[Process, Process]) -> None:
    one, other = two
    charge = await one.charge(10)
    one.settle(charge, 1200)
    one.settle(charge, 5)  # once
    # The store knows it at once: no statement is due yet.
    await one.settled()
    assert one.shared.total() == 1200
    assert (await other.refused(1)).status == 429
    assert (await one.refused(1)).status == 429
    assert one.shared.total() == 1200


async def test_what_was_expected_and_not_used_is_given_back(two: tuple[Process, Process]) -> None:
    one, other = two
    one.settle(await one.charge(990), 10)
    await one.tick()
    await other.charge(500)
    assert one.shared.total() <= 1000


async def test_every_budget_of_a_key_must_allow_a_request(shared: SharedBudgets) -> None:
    keys = {
        "a": KeySettings(budget=BudgetSettings(tokens_per_minute=100, tokens_per_month=1000, money_per_day=0.0005)),
    }
    one = Process(shared, "1", keys)
    await one.charge(90, micros=100)
    error = await one.refused(20)
    assert "tokens_per_minute" in error.message and error.headers["retry-after"] == "60"
    with pytest.raises(GatewayError, match="money_per_day"):
        await one.charge(1, micros=401)
    # What one budget refuses is charged to none.
    await one.charge(10, micros=400)
    # In the next minute there is a new budget of the minute, and of no other window.
    shared.now += 60
    await one.charge(100)
    with pytest.raises(GatewayError, match="money_per_day"):
        await one.charge(0, micros=1)
    shared.now += 86400
    await one.charge(100, micros=500)
    with pytest.raises(GatewayError, match="tokens_per_month"):
        for _ in range(20):
            shared.now += 60
            await one.charge(100)


async def test_a_request_counts_where_it_was_admitted(two: tuple[Process, Process]) -> None:
    """Also when its end comes in another window, and the store learns of it."""
    one, other = two
    charge = await one.charge(10)
    window = next(iter(one.budgets._keys["a"].shares.values())).window
    one.shared.now = window.end + 30
    await other.charge(1000)
    one.settle(charge, 700)
    await one.tick()
    [use] = await one.store.use("a", [("tokens_per_day", window)])
    assert use.spent == 700
    assert one.budgets._keys["a"].past == [] or all(share.is_stated for share in one.budgets._keys["a"].past)
    await one.tick()
    assert one.budgets._keys["a"].past == []


async def test_a_clock_that_is_set_back_a_little_opens_no_window_anew(shared: SharedBudgets) -> None:
    """The one before is stated whole and forgotten here: what is stated anew would replace that."""
    one = Process(shared, "1")
    one.settle(await one.charge(700), 700)
    window = next(iter(one.budgets._keys["a"].shares.values())).window
    shared.now = window.end
    await one.tick()
    await one.tick()
    assert one.budgets._keys["a"].past == []
    shared.now = window.end - 1.0
    await one.charge(400)
    await one.tick()
    [use] = await one.store.use("a", [("tokens_per_day", window)])
    assert use.spent == 700


async def test_keys_count_apart_and_an_entry_for_all_gives_each_its_own(shared: SharedBudgets) -> None:
    keys = {"*": KeySettings(budget=BudgetSettings(tokens_per_day=100)), "free": KeySettings()}
    one = Process(shared, "1", keys)
    for key in ("a", "b"):
        await one.charge(100, key)
        with pytest.raises(GatewayError):
            await one.charge(1, key)
    assert one.budgets.of("free") == () and one.budgets.of("c") != ()


async def test_another_limit_holds_at_once_and_what_is_spent_stays_spent(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    await one.charge(500)
    await one.settled()
    one.budgets.change({"a": KeySettings(budget=BudgetSettings(tokens_per_day=400))})
    shared.now += REPEAT_S
    assert (await one.refused(400)).status == 429
    one.budgets.change({"a": KeySettings(budget=BudgetSettings(tokens_per_day=2000))})
    shared.now += REPEAT_S
    await one.charge(1500)
    one.budgets.change({})
    assert one.budgets.of("a") == ()
    await one.charge(5000)
    await one.tick()
    one.budgets.change(DAY)
    assert (await one.refused(1)).status == 429
    await one.tick()
    assert shared.total() == 2000


async def test_what_a_removed_budget_held_is_given_back_when_the_store_answers_again(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    await one.charge(10)
    await one.tick()
    assert shared.total() > 10
    one.store.fails = True
    one.budgets.change({})
    await one.tick()
    one.store.fails = False
    await one.tick()
    assert shared.total() == 10


async def test_what_a_lost_reply_has_reserved_is_given_back(two: tuple[Process, Process]) -> None:
    """Also by a process that has no other request of the key."""
    one, other = two
    one.store.fails = one.store.acts = True
    assert (await one.refused(10)).status == 503
    one.store.fails = False
    one.shared.now += ALIVE_S
    await one.tick()
    assert (await other.refused(995)).status == 503
    await one.tick()
    one.budgets.tick(one.shared.now + 1)
    await one.settled()
    await other.charge(995)


async def test_a_lower_limit_holds_for_what_was_reserved_under_the_one_before(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    await one.charge(500)
    await one.settled()
    assert one.unspent() > 0
    one.budgets.change({"a": KeySettings(budget=BudgetSettings(tokens_per_day=400))})
    assert (await one.refused(1)).status == 429
    assert shared.total() == 500


async def test_a_limit_that_is_lowered_while_the_store_is_asked_holds_for_its_answer(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    await one.charge(400)
    await one.settled()
    one.store.gate.clear()
    calls = one.store.calls
    waits = asyncio.create_task(one.charge(500))
    while one.store.calls == calls:  # noqa: ASYNC110 (the call is made by a task)
        await asyncio.sleep(0)
    one.budgets.change({"a": KeySettings(budget=BudgetSettings(tokens_per_day=401))})
    await one.charge(0)
    one.store.gate.set()
    with pytest.raises(GatewayError):
        await waits
    await one.charge(1)
    assert (await one.refused(1)).status == 429


async def test_a_higher_limit_holds_for_what_was_refused_a_moment_ago(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    await one.charge(1000)
    await one.refused(1)
    one.budgets.change({"a": KeySettings(budget=BudgetSettings(tokens_per_day=2000))})
    await one.charge(1000)


async def test_what_was_refused_is_asked_again_when_the_clock_was_set_back(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    charge = await one.charge(1000)
    await one.refused(10)
    shared.now -= 3600
    one.settle(charge, 10)
    await one.charge(10)


async def test_what_a_backend_reports_beyond_measure_is_refused_and_breaks_nothing(tmp_path: Path) -> None:
    """SQLite has whole numbers of 64 bits."""
    budgets = Budgets(lambda: SqliteBudgets(tmp_path / "b.db"), lambda: 5.0, Metrics())
    budgets.change({"a": KeySettings(budget=BudgetSettings(tokens_per_day=10**15))})
    for charge in [await budgets.charge("a", Amount(1)) for _ in range(2000)]:
        budgets.settle("a", charge, Amount(MOST))
    with pytest.raises(GatewayError, match="tokens_per_day"):
        await budgets.charge("a", Amount(1))
    await budgets.aclose()


async def test_requests_that_wait_together_get_what_there_is(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    one.store.gate.clear()
    asked = [asyncio.create_task(one.charge(300)) for _ in range(5)]
    await asyncio.sleep(0)
    one.store.gate.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(each, Charge) for each in found] == [True] * 3 + [False] * 2
    assert {each.status for each in found if isinstance(each, GatewayError)} == {429}


async def test_a_client_that_leaves_while_it_waits_spends_nothing(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    one.store.gate.clear()
    asked = asyncio.create_task(one.charge(300))
    while not one.store.calls:  # noqa: ASYNC110 (the call is made by a task)
        await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait((asked,))
    one.store.gate.set()
    await one.charge(1000)


async def test_the_share_is_shown(shared: SharedBudgets) -> None:
    one = Process(shared, "1")
    await one.charge(100)
    one.budgets.tick(shared.now)
    await one.settled()
    one.budgets.tick(shared.now)
    shown = {sample.labels: sample.value for sample in one.metrics.budget_share.samples()}
    assert shown == {("a", "tokens_per_day"): one.unspent()} and one.unspent() > 0


STEP: Final = st.one_of(
    st.tuples(st.just("charge"), st.integers(0, 2), st.integers(1, 400)),
    st.tuples(st.just("settle"), st.integers(0, 2), st.integers(0, 300)),
    st.tuples(st.sampled_from(["tick", "kill", "cut", "lose", "join"]), st.integers(0, 2), st.just(0)),
)


@given(steps=st.lists(STEP, max_size=60))
@settings(deadline=None)
def test_no_order_of_events_admits_more_than_the_limit(steps: list[tuple[str, int, int]]) -> None:
    """Beyond it there is only what requests have used above their estimates. `cut`: calls have no effect; `lose`: they
    have, and their replies are lost."""

    async def run() -> None:
        shared = SharedBudgets()
        shared.now = NOON
        processes = [Process(shared, str(number)) for number in range(3)]
        running: list[list[tuple[Charge, int]]] = [[], [], []]
        admitted, above = 0, 0
        for number, (event, which, tokens) in enumerate(steps):
            one = processes[which]
            match event:
                case "charge":
                    try:
                        running[which].append((await one.charge(tokens), tokens))
                        admitted += tokens
                    except GatewayError as error:
                        assert error.status in (429, 503)
                case "settle" if running[which]:
                    charge, expected = running[which].pop()
                    one.settle(charge, tokens)
                    admitted += tokens - expected
                    above += max(0, tokens - expected)
                case "tick":
                    await one.tick()
                case "kill":
                    # What it has admitted stays admitted.
                    await one.settled()
                    processes[which] = Process(shared, f"{which} {number}")
                    running[which].clear()
                case "cut" | "lose":
                    one.store.fails, one.store.acts = True, event == "lose"
                case "join":
                    one.store.fails = False
                case _:
                    pass
            assert admitted <= 1000 + above
        for one in processes:
            await one.settled()
            if one.budgets._opened is not None:
                await one.budgets._opened[1].aclose()

    asyncio.run(run())
