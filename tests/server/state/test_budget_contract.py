"""What every store of budgets does, of whichever kind."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.load_test.store_servers import PROGRAMS, server
from gateway.server.access.budgets import BudgetName, Window, window_of
from gateway.server.state.budget_store import ALIVE_S, PART, BudgetUse, Claim, Holding, Standing, settle_claim
from gateway.server.state.sqlite import SqliteBudgets, SqliteStore
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.budgets import ValkeyBudgets
from gateway.server.state.valkey.store import ValkeyStore
from tests.server.state.budget_stores import BUDGET_STORES, MOST, BudgetStores

WINDOW: Final = window_of("tokens_per_day", time.time())


def claim(spent: int = 0, reserved: int = 0, needs: int = 0, limit: int = 1000, window: Window = WINDOW) -> Claim:
    return Claim("tokens_per_day", window, limit, spent, reserved, needs)


@pytest.fixture(params=BUDGET_STORES)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BudgetStores]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(BUDGET_STORES[request.param](tmp_path))


async def test_a_process_reserves_its_part_of_what_is_left(stores: BudgetStores) -> None:
    one, two, _ = stores
    assert await one.reserve("a", [claim()]) == [Standing(250, 1000, 250)]
    # Of 750, an eighth: there are two of them.
    assert await two.reserve("a", [claim()]) == [Standing(93, 1000, 93)]
    assert await one.use("a", [("tokens_per_day", WINDOW)]) == [BudgetUse(0, 343)]


async def test_what_a_request_needs_is_reserved_as_far_as_there_is_any(stores: BudgetStores) -> None:
    one, two, _ = stores
    assert await one.reserve("a", [claim(needs=700)]) == [Standing(700, 1000, 250)]
    # It does not get what it needs; what there is it gets.
    assert (await two.reserve("a", [claim(needs=400)]))[0].reserved == 300
    # So much is left, and the other one holds it: that one is to hold nothing that it does not spend.
    assert await one.reserve("a", [claim(spent=100, reserved=700)]) == [Standing(700, 900, 0)]
    assert await one.reserve("a", [claim(spent=100, reserved=100)]) == [Standing(100, 900, 0)]
    assert (await two.reserve("a", [claim(reserved=300, needs=400)]))[0].reserved == 400


async def test_what_is_not_left_makes_nobody_give_anything_back(stores: BudgetStores) -> None:
    one, two, _ = stores
    assert (await one.reserve("a", [claim(spent=900, reserved=950)]))[0] == Standing(950, 100, 25)
    assert (await two.reserve("a", [claim(needs=101)]))[0] == Standing(50, 100, 6)
    assert (await one.reserve("a", [claim(spent=900, reserved=950)]))[0] == Standing(950, 100, 6)


async def test_what_is_spent_counts_beyond_what_was_reserved_and_beyond_the_limit(stores: BudgetStores) -> None:
    one, two, _ = stores
    assert await one.reserve("a", [claim(spent=1100, reserved=250)]) == [Standing(1100, -100, 0)]
    assert await two.reserve("a", [claim(needs=1)]) == [Standing(0, -100, 0)]
    # What a request was expected to use and has not used is given back.
    assert await one.reserve("a", [claim(spent=900, reserved=900)]) == [Standing(912, 100, 12)]


async def test_what_a_process_states_again_is_not_counted_twice(stores: BudgetStores) -> None:
    one, two, _ = stores
    for _ in range(3):
        assert (await one.reserve("a", [claim(spent=200, reserved=400)]))[0] == Standing(400, 800, 200)
    assert (await two.use("a", [("tokens_per_day", WINDOW)]))[0] == BudgetUse(200, 200)


async def test_a_process_that_begins_nothing_more_gives_its_share_back(stores: BudgetStores) -> None:
    one, two, _ = stores
    await one.reserve("a", [claim(spent=100, reserved=300)])
    last = msgspec.structs.replace(claim(spent=120, reserved=120), ends=True)
    assert await one.reserve("a", [last]) == [Standing(120, 880, 220)]
    assert (await two.use("a", [("tokens_per_day", WINDOW)]))[0] == BudgetUse(120, 0)


async def test_keys_budgets_and_windows_count_apart(stores: BudgetStores) -> None:
    one, two, _ = stores
    await one.reserve("a", [claim(spent=1000, reserved=1000)])
    earlier = Window(WINDOW.start - 86400, WINDOW.start)
    month: BudgetName = "tokens_per_month"
    found = await two.reserve("a", [claim(), claim(window=earlier), msgspec.structs.replace(claim(), name=month)])
    assert [each.reserved for each in found] == [0, 250, 250]
    assert (await two.reserve("b", [claim()]))[0].reserved == 250


async def test_another_limit_holds_from_then_on(stores: BudgetStores) -> None:
    one, two, _ = stores
    await one.reserve("a", [claim(spent=500, reserved=500)])
    assert (await two.reserve("a", [claim(needs=1, limit=400)]))[0] == Standing(0, -100, 0)
    assert (await two.reserve("a", [claim(needs=1, limit=2000)]))[0].reserved == 171


async def test_many_at_once_never_get_more_than_the_limit(stores: BudgetStores) -> None:
    found = await asyncio.gather(*(store.reserve("a", [claim(needs=400)]) for store in stores))
    assert sum(each.reserved for [each] in found) == 1000
    assert (await stores[0].use("a", [("tokens_per_day", WINDOW)]))[0].reserved == 1000


async def test_budgets_that_nobody_has_used_are_untouched(stores: BudgetStores) -> None:
    assert await stores[0].use("a", [("tokens_per_day", WINDOW)]) == [BudgetUse(0, 0)]
    await stores[0].ping()


class Step(msgspec.Struct, frozen=True):
    process: int
    spent: int
    reserved: int
    needs: int
    limit: int
    ends: bool


STEPS: Final = st.lists(
    st.builds(
        Step,
        st.integers(0, MOST - 1),
        st.integers(0, 2000),
        st.integers(0, 2000),
        st.integers(0, 500),
        st.sampled_from([1, 1000, 10**15]),
        st.booleans(),
    ),
    max_size=12,
)


@pytest.mark.parametrize("kind", BUDGET_STORES)
def test_every_store_has_the_same_rule(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The rule in Python, beside what the store says: they never differ."""

    async def run() -> None:
        number = 0
        async with BUDGET_STORES[kind](tmp_path_factory.mktemp("budgets")) as opened:
            loop = asyncio.get_running_loop()

            async def same(steps: list[Step]) -> None:
                nonlocal number
                number += 1
                key, held = f"key-{number}", dict[int, Holding]()
                for step in steps:
                    asked = claim(step.spent, step.reserved, 0 if step.ends else step.needs, step.limit)
                    asked = msgspec.structs.replace(asked, ends=step.ends)
                    others = [one for process, one in held.items() if process != step.process]
                    held[step.process], expected = settle_claim(asked, others, 0)
                    assert await opened[step.process].reserve(key, [asked]) == [expected]

            @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
            @given(STEPS)
            def law(steps: list[Step]) -> None:
                asyncio.run_coroutine_threadsafe(same(steps), loop).result()

            await asyncio.to_thread(law)

    asyncio.run(run())


async def test_what_a_silent_process_of_a_file_had_reserved_is_gone(tmp_path: Path) -> None:
    now = [time.time()]
    one, two = (SqliteBudgets(tmp_path / "b.db", clock=lambda: now[0]) for _ in range(2))
    async with aclosing(one), aclosing(two):
        await one.reserve("a", [claim(spent=100, reserved=600)])
        assert (await two.reserve("a", [claim(needs=500)]))[0] == Standing(400, 900, 50)
        now[0] += ALIVE_S
        # Alone again, and still without what the other one may have spent.
        assert (await two.reserve("a", [claim(needs=500)]))[0] == Standing(400, 400, 400 // PART)
        # A clock that is set back brings nobody to life.
        now[0] -= 3600
        assert (await two.reserve("a", [claim(needs=500)]))[0] == Standing(400, 400, 400 // PART)


async def test_a_reservation_in_a_file_looks_at_no_other_key_and_no_other_window(tmp_path: Path) -> None:
    """Counted in instructions of SQLite's virtual machine, tens of them."""
    async with aclosing(SqliteBudgets(tmp_path / "b.db", 2**24)) as store:

        async def cost() -> int:
            steps = 0

            def step() -> int:
                nonlocal steps
                steps += 1
                return 0

            run = store._database._near._connection()
            run.set_progress_handler(step, 10)
            await store.reserve("a", [claim(spent=100, reserved=200)])
            run.set_progress_handler(None, 0)
            return steps

        await cost()
        alone = await cost()
        row = (WINDOW.end, 1, 5, 5, 0.0, 0)
        others = [(f"key-{key}", "tokens_per_day", WINDOW.start, "x", *row) for key in range(2000)]
        insert = f"INSERT INTO budgets VALUES ({', '.join('?' * 10)})"
        await store._database.write(lambda run: run.executemany(insert, others))
        assert 0 < await cost() <= 2 * alone


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_what_a_silent_process_of_a_server_had_reserved_is_gone(kind: str, tmp_path: Path) -> None:
    async with server(kind, tmp_path) as running:
        address = read_address(running.url)
        async with aclosing(ValkeyBudgets(address)) as one, aclosing(ValkeyBudgets(address, alive_s=0)) as two:
            await one.reserve("a", [claim(spent=100, reserved=600)])
            assert (await two.reserve("a", [claim(needs=500)]))[0] == Standing(400, 400, 400 // PART)


async def test_a_call_that_was_given_up_has_no_effect_behind_the_next_one(tmp_path: Path) -> None:
    """What it would have taken away is reserved again, and may be spent."""
    store = SqliteBudgets(tmp_path / "b.db")
    async with aclosing(store):
        await store.reserve("a", [claim(reserved=500)])
        store._numbers = count(0)
        with pytest.raises(StoreUnavailable):
            await store.reserve("a", [claim(spent=100, reserved=100)])
        assert await store.use("a", [("tokens_per_day", WINDOW)]) == [BudgetUse(0, 500)]


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_late_call_of_a_server_has_no_effect(kind: str, tmp_path: Path) -> None:
    async with server(kind, tmp_path) as running, aclosing(ValkeyBudgets(read_address(running.url))) as store:
        await store.reserve("a", [claim(reserved=500)])
        store._numbers = count(0)
        with pytest.raises(StoreUnavailable):
            await store.reserve("a", [claim(spent=100, reserved=100)])
        assert await store.use("a", [("tokens_per_day", WINDOW)]) == [BudgetUse(0, 500)]


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_what_is_spent_survives_the_deletion_of_contents(kind: str, tmp_path: Path) -> None:
    async with server(kind, tmp_path) as running:
        address = read_address(running.url)
        async with (
            aclosing(ValkeyBudgets(address)) as budgets,
            aclosing(ValkeyStore(address, lambda *_: None)) as store,
        ):
            await budgets.reserve("a", [claim(spent=1000)])
            await store.forget("a")
            await store.purge()
            assert await budgets.use("a", [("tokens_per_day", WINDOW)]) == [BudgetUse(1000, 0)]


async def test_what_is_spent_survives_the_deletion_of_contents_of_a_file(tmp_path: Path) -> None:
    """Beside the other tables of a file that was made before there were budgets."""
    path = tmp_path / "gateway.db"
    async with aclosing(SqliteStore(path, "1", 2**20, lambda *_: None)) as store:
        await store.ping()
        async with aclosing(SqliteBudgets(path)) as budgets:
            await budgets.reserve("a", [claim(spent=1000)])
            await store.forget("a")
            await store.purge()
            assert await budgets.use("a", [("tokens_per_day", WINDOW)]) == [BudgetUse(1000, 0)]
