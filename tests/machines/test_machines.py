"""Tests two gateways with two workers each, a store and nginx, each on a machine of its own; one of them fails."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import httpx
import msgspec
import pytest
import pytest_asyncio

from tests.machines.client_requests import client
from tests.machines.cluster import CLIENT_KEYS, GATEWAYS, Cluster, cluster
from tests.machines.installed import needs
from tests.machines.traffic import GOOD, Outcomes, Traffic, traffic

pytestmark = [pytest.mark.state, pytest.mark.asyncio(loop_scope="module"), needs("nginx")]

ALICE: Final = CLIENT_KEYS["alice"]
BACK_S: Final = 30.0
DURING_S: Final = 4.0
FOLLOW_UPS: Final = 500


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machines(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """The deadline is far above what a busy machine takes, so that nothing is not stored without a fault."""
    async with cluster(tmp_path_factory.mktemp("cluster"), deadline_ms=1500, keys={}) as opened:
        yield opened


async def respond(client: httpx.AsyncClient, text: str, previous: str | None = None) -> httpx.Response:
    return await client.post("/v1/responses", json={"model": "m", "input": text, "previous_response_id": previous})


async def test_500_follow_ups_find_their_history_on_the_other_machine(machines: Cluster) -> None:
    """Each is sent as soon as the response before it is there. The demo model counts the words of the history."""

    async def conversation() -> None:
        previous, known = None, 0
        for number in range(FOLLOW_UPS // 10 + 1):
            response = await respond(clients[number % 2], "Hello again", previous)
            assert response.status_code == 200, response.text
            body = response.json()
            assert body["previous_response_id"] == previous and body["usage"]["input_tokens"] > known
            previous, known = body["id"], body["usage"]["input_tokens"]

    clients = [client(machines, name) for name in GATEWAYS]
    async with clients[0], clients[1]:
        await asyncio.gather(*(conversation() for _ in range(10)))


async def test_an_answer_of_another_key_exists_on_no_machine(machines: Cluster) -> None:
    async with client(machines, "gateway1") as mine, client(machines, "gateway2", "bob") as other:
        made = (await respond(mine, "Hello")).json()["id"]
        found = await respond(other, "And?", made)
        unknown = await respond(other, "And?", "resp_" + "0" * 24)
        assert (found.status_code, unknown.status_code) == (400, 400)
        assert found.text.replace(made, "ID") == unknown.text.replace("resp_" + "0" * 24, "ID")
        deleted = await mine.delete(f"/v1/responses/{made}")
        assert deleted.status_code == 200
    async with client(machines, "gateway2") as elsewhere:
        assert (await respond(elsewhere, "And?", made)).status_code == 400


Act = Callable[[Cluster], Awaitable[None]]


class Fault(msgspec.Struct, frozen=True):
    """What fails, how it ends, and the outcomes that clients may see besides the good ones. `network`: only separate
    machines can fail like this."""

    begin: Act
    end: Act
    allowed: frozenset[str]
    network: bool = False


def each(*outcomes: str) -> frozenset[str]:
    """These outcomes, for each kind of request."""
    return frozenset(f"{kind} {outcome}" for kind in ("chat", "stream", "chain") for outcome in outcomes)


async def kill_workers(machines: Cluster) -> None:
    for name in GATEWAYS:
        os.kill(machines.workers(name)[0], signal.SIGKILL)
        await asyncio.sleep(1)


async def unplug(machines: Cluster) -> None:
    await machines.hosts["gateway1"].unplug()


async def plug(machines: Cluster) -> None:
    await machines.hosts["gateway1"].plug()


async def cut(machines: Cluster) -> None:
    await machines.hosts["gateway1"].cut(machines.hosts["store"])


async def join(machines: Cluster) -> None:
    await machines.hosts["gateway1"].join(machines.hosts["store"])


async def stop_store(machines: Cluster) -> None:
    os.kill(machines.store_pid, signal.SIGSTOP)


async def resume_store(machines: Cluster) -> None:
    os.kill(machines.store_pid, signal.SIGCONT)


def limit_store(maxmemory: str) -> Act:
    async def act(machines: Cluster) -> None:
        async with machines.admin as admin:
            await admin.config_set("maxmemory", maxmemory)

    return act


async def nothing(_: Cluster) -> None:
    """It ends by itself."""


# What a client may see of a gateway that ends: nginx tells of it, or a response that has begun is cut off.
BROKEN: Final = each("gateway_unreachable", "cut")
# What it may see of a store that does not answer. A chat request does not need the store.
UNSTORED: Final = frozenset({"chain not stored", "chain store_unavailable"})
FAULTS: Final[Mapping[str, Fault]] = {
    "kill -9 of workers": Fault(kill_workers, nothing, BROKEN),
    "kill -9 of a gateway": Fault(
        lambda machines: machines.kill("gateway1"), lambda machines: machines.start_gateway("gateway1"), BROKEN
    ),
    "kill -9 of nginx": Fault(
        lambda machines: machines.kill("nginx"), lambda machines: machines.start_nginx(), each("cut")
    ),
    "kill -9 of the store": Fault(
        lambda machines: machines.kill("store"),
        lambda machines: machines.start_store(),
        # It comes back empty.
        UNSTORED | {"chain previous_response_not_found"},
    ),
    "SIGSTOP of the store": Fault(stop_store, resume_store, UNSTORED),
    "a full store": Fault(limit_store("1"), limit_store("256mb"), UNSTORED),
    "a gateway cut off from the store": Fault(cut, join, UNSTORED, network=True),
    "a gateway off the network": Fault(unplug, plug, BROKEN | each("timeout") | UNSTORED, network=True),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_while_a_machine_fails_clients_see_only_what_it_explains(machines: Cluster, name: str) -> None:
    fault = FAULTS[name]
    if fault.network and not machines.separate:
        pytest.skip("NOT RUN: no network namespaces can be made here")
    async with traffic(machines.url("nginx"), ALICE) as sent:
        before = await every_outcome(sent)
        await fault.begin(machines)
        await asyncio.sleep(DURING_S)
        await fault.end(machines)
        await settled(machines)
        during = sent.take()
        await asyncio.sleep(1)
        after = await every_outcome(sent)
    assert set(before) == GOOD, before
    assert set(during) - GOOD <= fault.allowed, during
    assert during["chat whole"] and during["stream whole"], during
    # Requests that were waiting for a machine that had vanished end later.
    assert set(after) - GOOD <= each("timeout") & fault.allowed, after
    assert set(after) >= GOOD, after


async def every_outcome(sent: Traffic) -> Outcomes:
    """What came of the requests of a second, or of as many as a busy machine takes until each kind has succeeded."""
    await asyncio.sleep(1)
    outcomes = sent.take()
    for _ in range(300):
        if set(outcomes) >= GOOD:
            break
        await asyncio.sleep(0.1)
        outcomes += sent.take()
    return outcomes


async def settled(machines: Cluster) -> None:
    """Wait until every gateway continues what the other one has answered, for what is promised at most.

    Each request has a connection of its own, so that every worker of a gateway gets some."""
    clients = [client(machines, name) for name in GATEWAYS]
    for one in clients:
        one.headers["connection"] = "close"
    async with asyncio.timeout(BACK_S + 5), clients[0], clients[1]:
        in_a_row = 0
        while in_a_row < 30:
            in_a_row = in_a_row + 1 if await _continues(*clients) else 0
            clients.reverse()
            await asyncio.sleep(0.02)


async def _continues(one: httpx.AsyncClient, other: httpx.AsyncClient) -> bool:
    try:
        first = await respond(one, "Hello")
        return first.json().get("store") is True and (await respond(other, "And?", first.json()["id"])).is_success
    except httpx.TransportError:
        return False


async def test_what_one_machine_forgets_is_forgotten_on_all(machines: Cluster, tmp_path: Any) -> None:
    async with client(machines, "gateway1") as one, client(machines, "gateway2") as other:
        made = (await respond(one, "Hello")).json()["id"]
        assert (await respond(other, "And?", made)).is_success
        async with machines.admin as admin:
            # What `dragoman state forget` does first: another record of the epoch.
            (name,) = [name async for name in admin.scan_iter("dg1:*:epoch") if await admin.get(name)][:1]
            await admin.set(name, os.urandom(32))
        for found in (one, other):
            assert (await respond(found, "And?", made)).status_code == 400
