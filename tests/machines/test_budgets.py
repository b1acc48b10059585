"""Tests the budgets of keys on two gateways with two workers each and one store: while all works, while one is killed,
and while one does not reach the store.

The law: what is admitted is never more than the limit and what the requests that run at the limit use beyond the
estimates of their prompts. Each test prints its figures.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from bench.load_test.store_servers import PROGRAMS, server
from gateway.server.access.budgets import window_of
from gateway.server.state.budget_store import PART, BudgetUse
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.budgets import ValkeyBudgets
from gateway.testing.gateway import gateway_command
from tests.machines.faulty_proxy import FaultyProxy, faulty_proxy
from tests.machines.installed import needs

pytestmark = [pytest.mark.state, pytest.mark.asyncio(loop_scope="module"), needs()]

LIMIT: Final = 1500
WORKERS: Final = 2
# So many requests run at once.
BURST: Final = 8
OWNERS: Final = ("all", "machine", "worker", "cut", "held")
KEYS: Final = {owner: f"sk-{owner}-0123456789" for owner in OWNERS}
HELLO: Final = [{"role": "user", "content": "Hello, tell me in some words what you can do."}]
START_S: Final = 60.0
BACK_S: Final = 60.0
# Refusals in a row after which every worker has refused one.
REFUSALS: Final = 24


class Machine:
    """One gateway, and the proxy before the store that it alone uses."""

    def __init__(self, folder: Path, proxy: FaultyProxy, stack: AsyncExitStack) -> None:
        self.proxy = proxy
        self.process: asyncio.subprocess.Process
        self.url = ""
        self._folder = folder
        self._stack = stack

    async def start(self) -> None:
        arguments = ("serve", "--workers", str(WORKERS), "--port", "0")
        command = await self._stack.enter_async_context(
            gateway_command(
                self._folder, None, *arguments, stderr=asyncio.subprocess.DEVNULL, DRAGOMAN_STATE_KEY="5" * 64
            )
        )
        await command.wait_ready()
        self.process, self.url = command.process, command.base_url
        async with asyncio.timeout(START_S), httpx.AsyncClient(trust_env=False, timeout=2) as client:
            while not await _is_ready(client, self.url):  # noqa: ASYNC110 (another process becomes ready)
                await asyncio.sleep(0.05)

    def workers(self) -> list[int]:
        parent = self.process.pid
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]

    async def kill(self) -> None:
        """kill -9 of all of its processes."""
        for pid in (*self.workers(), self.process.pid):
            os.kill(pid, signal.SIGKILL)
        await self.process.wait()


class Machines:
    """Both gateways, and what clients were admitted: the tokens of their answers, by owner."""

    def __init__(self, both: tuple[Machine, Machine], store: ValkeyBudgets) -> None:
        self.both = both
        self.store = store
        self.used = Counter[str]()
        self.largest = 0
        self.refused = Counter[str]()

    async def ask(self, machine: Machine, owner: str) -> bool:
        """Send one request over a connection of its own, which any worker may take. Return whether it was admitted."""
        headers = {"authorization": f"Bearer {KEYS[owner]}"}
        async with httpx.AsyncClient(base_url=machine.url, headers=headers, trust_env=False, timeout=30) as client:
            answer = await client.post("/v1/chat/completions", json={"model": "m", "messages": HELLO})
        if answer.status_code == 200:
            tokens = answer.json()["usage"]["total_tokens"]
            self.used[owner] += tokens
            self.largest = max(self.largest, tokens)
            return True
        code = answer.json()["error"]["code"]
        assert (answer.status_code, code) in {(429, "insufficient_quota"), (503, "budget_unavailable")}, answer.text
        self.refused[f"{owner} {code}"] += 1
        return False

    async def burst(self, owner: str, *machines: Machine, size: int = BURST) -> int:
        """Send requests at once, in turn to these gateways. Return how many were admitted."""
        chosen = [machines[number % len(machines)] for number in range(size)]
        return sum(await asyncio.gather(*(self.ask(machine, owner) for machine in chosen)))

    async def exhaust(self, owner: str, *machines: Machine, patient: bool = True) -> None:
        """Send bursts until no worker admits any more; `patient`: not before what others hold has come back."""
        quiet = 0
        async with asyncio.timeout(BACK_S * 2):
            while quiet < REFUSALS:
                before = self.refused[f"{owner} budget_unavailable"]
                admitted = await self.burst(owner, *machines)
                held = self.refused[f"{owner} budget_unavailable"] > before
                quiet = 0 if admitted or (held and patient) else quiet + BURST
                if held and patient:
                    await asyncio.sleep(0.3)

    async def stated(self, owner: str) -> BudgetUse:
        """Return what the store knows."""
        [use] = await self.store.use(owner, [("tokens_per_month", window_of("tokens_per_month", time.time()))])
        return use

    def holds(self, owner: str, what: str, **figures: object) -> None:
        """Check the law, and print the figures."""
        refused = {kind.split()[1]: count for kind, count in self.refused.items() if kind.split()[0] == owner}
        over = self.used[owner] - LIMIT
        known = {"admitted": f"{self.used[owner]} ({over:+})", "largest": self.largest, "refused": refused, **figures}
        told = ", ".join(f"{name} {value}" for name, value in known.items())
        sys.stderr.write(f"\n{what}: limit {LIMIT}, {told}\n")
        # Of all that run at once, each may exceed its estimate by all that it uses.
        assert over <= BURST * self.largest


async def _is_ready(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/readyz")).status_code == 200
    except httpx.TransportError:
        return False


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROGRAMS)
async def machines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Machines]:
    folder = tmp_path_factory.mktemp("budgets")
    (folder / "keys").write_text("".join(f"{owner}:{key}\n" for owner, key in KEYS.items()))
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(server(request.param, folder))
        both = []
        for name in ("one", "two"):
            proxy = await stack.enter_async_context(faulty_proxy(running.port))
            home = folder / name
            home.mkdir()
            settings: dict[str, Any] = {
                "server": {"api_keys_env": None, "api_keys_file": str(folder / "keys")},
                "log": {"file": None},
                "inspector": {"enabled": "off"},
                # A busy machine is no slow store.
                "state": {"store": f"valkey://127.0.0.1:{proxy.port}", "deadline_ms": 1000},
                "keys": {"*": {"budget": {"tokens_per_month": LIMIT}}},
                "backends": {"demo": {"adapter": "openai_chat", "base_url": "demo:chat"}},
                "models": {"m": {"backend": "demo"}},
            }
            (home / "settings.json").write_text(json.dumps(settings))
            both.append(Machine(home, proxy, stack))
        store = await stack.enter_async_context(aclosing(ValkeyBudgets(read_address(running.url))))
        # One after the other: a busy machine takes its time for each.
        for machine in both:
            await machine.start()
        yield Machines((both[0], both[1]), store)


async def test_all_workers_together_admit_the_limit(machines: Machines) -> None:
    await machines.exhaust("all", *machines.both)
    use = await machines.stated("all")
    machines.holds("all", "two gateways with two workers", stated=use.spent)
    # And nearly all of it: less than one request is left.
    assert machines.used["all"] > LIMIT - machines.largest


async def test_a_killed_machine_loses_its_share_and_nothing_is_admitted_twice(machines: Machines) -> None:
    one, two = machines.both
    for _ in range(3):
        await machines.burst("machine", one, two)
    before = await machines.stated("machine")
    # Answers that are under way are lost with it; they count as admitted by no client.
    running = [asyncio.create_task(machines.ask(one, "machine")) for _ in range(BURST)]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    await one.kill()
    await asyncio.gather(*running, return_exceptions=True)
    await one.start()
    await machines.exhaust("machine", one, two)
    use = await machines.stated("machine")
    lost = use.reserved
    machines.holds("machine", "kill -9 of a gateway", lost=lost, reserved_before=before.reserved)
    # The share of two workers that were killed, and what ran there, is all that was not admitted.
    assert lost <= LIMIT // PART + BURST * machines.largest
    assert machines.used["machine"] >= LIMIT - lost - BURST * machines.largest


async def test_a_killed_worker_loses_its_share(machines: Machines) -> None:
    one, two = machines.both
    for _ in range(3):
        await machines.burst("worker", one, two)
    os.kill(one.workers()[0], signal.SIGKILL)
    admitted = 0
    async with asyncio.timeout(BACK_S):
        while not admitted:
            try:
                admitted = await machines.burst("worker", one)
            except httpx.TransportError:
                await asyncio.sleep(0.1)
    await machines.exhaust("worker", one, two)
    use = await machines.stated("worker")
    machines.holds("worker", "kill -9 of a worker", lost=use.reserved)
    assert use.reserved <= LIMIT // PART


@pytest.mark.parametrize("owner", ["cut"])
async def test_a_machine_that_is_cut_off_admits_its_share_and_what_it_admitted_is_counted_before(
    machines: Machines, owner: str
) -> None:
    one, two = machines.both
    for _ in range(2):
        await machines.burst(owner, one, two)
    held = (await machines.stated(owner)).reserved
    before = machines.used[owner]
    await one.proxy.set("blackhole")
    await machines.exhaust(owner, one, patient=False)
    alone = machines.used[owner] - before
    # The others go on, and get all that the one that is cut off does not hold.
    await machines.exhaust(owner, two)
    machines.holds(owner, "cut off from the store", held_by_all=held, admitted_alone=alone)
    assert alone <= held + BURST * machines.largest
    await one.proxy.set("pass")
    await machines.exhaust(owner, one, two)
    machines.holds(owner, "and joined again", stated=(await machines.stated(owner)).spent)
    assert machines.used[owner] > LIMIT - 2 * machines.largest
