"""Tests what a store on a server does besides the contract of all stores: names, sizes, a full or read-only server,
foreign values, scripts that were flushed, authentication, TLS, warnings."""

import asyncio
import logging
import random
import re
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import valkey.asyncio

from bench.load_test.gateway_process import free_ports
from bench.load_test.store_servers import PROGRAMS, Server, server
from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.store import ABSENT, EVERYONE, SPACES, EvictionReason, Put, Space, StoreUnavailable
from gateway.server.state.valkey.address import ServerAddress, read_address
from gateway.server.state.valkey.connections import CONNECTIONS
from gateway.server.state.valkey.names import record_name
from gateway.server.state.valkey.store import ValkeyStore
from gateway.server.telemetry.metrics import Metrics

LONG: Final = 60.0


@asynccontextmanager
async def client(running: Server) -> AsyncIterator[Any]:
    """The library's own client, which sees what is on the server."""
    opened = valkey.asyncio.Valkey(port=running.port)
    yield opened
    await opened.aclose()


def put(data: bytes, key: bytes = b"k", space: Space = "sum", ttl_s: float = LONG) -> Put:
    return Put(space, key, data, ttl_s)


async def failure(call: Any) -> str:
    with pytest.raises(StoreUnavailable) as raised:
        await call
    return raised.value.reason


async def test_no_name_on_the_server_shows_a_tenant_or_a_key(running: Server, store: ValkeyStore) -> None:
    await store.put("alice", put(b"data", key=b"resp_1234"))
    await store.acquire("alice", "summarise", LONG)
    async with client(running) as seen:
        names = sorted(await seen.keys())
    assert all(name.startswith(b"dg1:") for name in names)
    assert not re.search(rb"alice|resp|summarise", b" ".join(names))
    assert {name.split(b":")[-2] for name in names if name.count(b":") == 4} == {b"sum", b"lease"}


async def test_the_same_key_has_another_name_for_each_tenant_and_epoch(running: Server, store: ValkeyStore) -> None:
    seen = set[bytes]()
    for tenant in ("a", "a", "b"):
        await store.put(tenant, put(b"data"))
        async with client(running) as one:
            seen |= {name async for name in one.scan_iter(b"dg1:*:sum:*")}
        await store.forget(tenant)
    assert len({name.split(b":")[-1] for name in seen}) == 3


async def test_forget_deletes_the_entries_themselves(running: Server, store: ValkeyStore) -> None:
    for number in range(1200):
        await store.put("a", put(b"x", key=b"%d" % number))
    await store.put("b", put(b"x"))
    await store.forget("a")
    async with client(running) as seen:
        assert len({name async for name in seen.scan_iter(b"dg1:*:sum:*")}) == 1
        assert await seen.scard("dg1:epochs") == 1


async def test_purge_leaves_what_is_not_the_gateways(running: Server, store: ValkeyStore) -> None:
    for number in range(2500):
        await store.put("a", put(b"x", key=b"%d" % number))
    async with client(running) as seen:
        await seen.set("theirs", "x")
        await store.purge()
        # The time of it is for all machines.
        assert sorted(await seen.keys()) == [record_name(EVERYONE), b"theirs"]


async def test_the_sizes_are_those_of_the_entries_that_are_there(running: Server, store: ValkeyStore) -> None:
    chance = random.Random(5)
    for _ in range(400):
        space, key = chance.choice(SPACES), b"%d" % chance.randrange(20)
        match chance.randrange(4):
            case 0:
                await store.delete("a", space, [key])
            case 1:
                await store.extend("a", space, [key], LONG)
            case _:
                ttl = chance.choice((0.001, LONG))
                await store.put("a", put(bytes(chance.randrange(300)), key, space, ttl))
    await asyncio.sleep(0.01)
    counted = {(used.space, used.entries, used.bytes) for used in (await store.stats()).usage}
    entries, sizes = Counter[str](), Counter[str]()
    async with client(running) as seen:
        # A scan may give a name twice, where the table of names has just become smaller.
        for name in {name async for name in seen.scan_iter(b"dg1:{*:*:*:*")}:
            space = name.split(b":")[-2].decode()
            entries[space] += 1
            sizes[space] += await seen.strlen(name)
    assert counted == {(space, entries[space], sizes[space]) for space in entries}


async def test_an_ended_epoch_and_its_index_end_with_their_entries(running: Server, store: ValkeyStore) -> None:
    await store.put("a", put(b"x"))
    async with client(running) as seen:
        lives = [await seen.pttl(name) for name in await seen.keys() if name.count(b":") > 2]
    assert len(lives) == 3 and all(0 < life <= 1000 * LONG + 60_000 for life in lives)


async def test_a_tenant_that_fills_half_of_the_memory_loses_its_own(running: Server) -> None:
    removed: list[tuple[Space, EvictionReason]] = []
    async with client(running) as seen:
        await seen.config_set("maxmemory", 16_000_000)
    async with aclosing(ValkeyStore(read_address(running.url), lambda *what: removed.append(what))) as store:
        await store.put("b", put(b"x"))
        for number in range(100):
            await store.put("a", put(bytes(100_000), key=b"%d" % number))
        assert (await store.get("b", "sum", [b"k"]))[0] is not None
        kept = await store.get("a", "sum", [b"%d" % number for number in range(100)])
        # Two that were written in one millisecond may go in either order.
        assert kept.count(None) == 21 and None not in kept[23:]
        assert removed == [("sum", "full")] * 21
        assert await failure(store.put("a", put(bytes(8_000_001)))) == "full"
        assert (await store.get("a", "sum", [b"99"]))[0] is not None


async def test_a_full_server_is_read_and_forgets_but_takes_no_entry(running: Server, store: ValkeyStore) -> None:
    await store.put("a", put(b"there"))
    lease = await store.acquire("a", "work", LONG)
    assert lease is not None
    async with client(running) as seen:
        await seen.config_set("maxmemory", 1)
    assert await failure(store.put("a", put(b"new", key=b"n"))) == "full"
    assert await failure(store.commit(lease, [put(b"new", key=b"n")])) == "full"
    found = await store.get("a", "sum", [b"k", b"n"])
    assert [entry and entry.data for entry in found] == [b"there", None]
    assert await store.renew(lease) and await store.acquire("a", "other", LONG)
    await store.extend("a", "sum", [b"k"], LONG)
    await store.delete("a", "sum", [b"k"])
    await store.forget("a")
    assert await store.get("a", "sum", [b"k"]) == [None]


async def test_a_replica_is_read_only(running: Server, store: ValkeyStore) -> None:
    await store.put("a", put(b"there"))
    async with client(running) as seen:
        await seen.execute_command("REPLICAOF", "127.0.0.1", "1")
        assert await failure(store.put("a", put(b"new"))) == "full"
        assert await failure(store.acquire("a", "work", LONG)) == "full"
        assert (await store.get("a", "sum", [b"k"]))[0] is not None
        await seen.execute_command("REPLICAOF", "NO", "ONE")
    assert await store.put("a", put(b"new"))


async def test_foreign_values_are_misses_and_can_be_replaced(running: Server, store: ValkeyStore) -> None:
    for key in (b"list", b"text", b"number", b"kept"):
        await store.put("a", put(key, key=key))
    async with client(running) as seen:
        names = {await seen.get(name): name async for name in seen.scan_iter(b"dg1:*:sum:*")}
        found = {value.partition(b":")[2]: name for value, name in names.items()}
        await seen.delete(found[b"list"])
        await seen.rpush(found[b"list"], "foreign")
        await seen.set(found[b"text"], "foreign")
        await seen.set(found[b"number"], "9" * 400 + ":foreign")
    entries = await store.get("a", "sum", [b"list", b"text", b"number", b"kept"])
    assert [entry and entry.data for entry in entries] == [None, None, None, b"kept"]
    for key in (b"list", b"text"):
        assert await store.put("a", Put("sum", key, b"new", LONG, ABSENT))
    await store.delete("a", "sum", [b"list", b"text", b"number"])
    await store.stats()


async def test_a_foreign_record_of_an_epoch_is_replaced(running: Server, store: ValkeyStore) -> None:
    await store.put("a", put(b"x"))
    async with client(running) as seen:
        (name,) = await seen.keys("dg1:*:epoch")
        await seen.set(name, "foreign")
    assert await store.get("a", "sum", [b"k"]) == [None]
    assert await store.put("a", put(b"new"))
    assert (await store.get("a", "sum", [b"k"]))[0] is not None


async def test_a_server_that_lost_everything_is_used_again(running: Server, store: ValkeyStore) -> None:
    lease = await store.acquire("a", "work", LONG)
    await store.put("a", put(b"x"))
    assert lease is not None
    async with client(running) as seen:
        await seen.flushall()
        await seen.script_flush()
    assert await store.get("a", "sum", [b"k"]) == [None]
    assert not await store.commit(lease, [put(b"late")])
    again = await store.acquire("a", "work", LONG)
    assert again is not None and again.token > lease.token
    assert await store.put("a", put(b"new"))


async def test_many_calls_share_few_connections(running: Server, store: ValkeyStore) -> None:
    guarded = GuardedStore(store, Metrics(), LONG)
    await asyncio.gather(*(guarded.put("a", put(b"x", key=b"%d" % number)) for number in range(500)))
    async with client(running) as seen:
        assert len([one for one in await seen.client_list() if one["name"] == "dragoman"]) <= CONNECTIONS


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_password_is_sent_and_a_wrong_one_is_told_without_it(kind: str, tmp_path: Path) -> None:
    async with server(kind, tmp_path, "--requirepass", "right") as running:
        for password, reason in (("right", None), ("wrong-secret", "down"), (None, "down")):
            address = ServerAddress("127.0.0.1", running.port, password=password)
            async with aclosing(ValkeyStore(address, lambda *_: None)) as store:
                if reason is None:
                    assert await store.put("a", put(b"x"))
                    continue
                with pytest.raises(StoreUnavailable) as raised:
                    await store.put("a", put(b"x"))
                assert raised.value.reason == reason and "secret" not in str(raised.value)


async def test_databases_are_apart(running: Server) -> None:
    one, two = (ValkeyStore(read_address(f"{running.url}/{number}"), lambda *_: None) for number in (1, 2))
    async with aclosing(one), aclosing(two):
        await one.put("a", put(b"x"))
        assert await two.get("a", "sum", [b"k"]) == [None]


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for this name, signed by itself, and its key."""
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
    subprocess.run([*made, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True, timeout=60)
    return paths


@pytest.mark.parametrize(("name", "works"), [("localhost", True), ("elsewhere.example", False)])
async def test_tls_needs_a_certificate_of_the_host(tmp_path: Path, name: str, works: bool) -> None:
    if "redis" not in PROGRAMS:
        pytest.skip("the server of the wheel is built without TLS")
    pem, key = certificate(tmp_path, name)
    tls = ("--tls-cert-file", str(pem), "--tls-key-file", str(key), "--tls-auth-clients", "no")
    (port,) = free_ports(1)
    async with server("redis", tmp_path, *tls, "--tls-port", str(port)):
        address = read_address(f"rediss://localhost:{port}?ca_file={pem}")
        async with aclosing(ValkeyStore(address, lambda *_: None)) as store:
            if works:
                assert await store.put("a", put(b"x"))
            else:
                assert await failure(store.put("a", put(b"x"))) == "down"
        async with aclosing(ValkeyStore(read_address(f"rediss://localhost:{port}"), lambda *_: None)) as store:
            assert await failure(store.put("a", put(b"x"))) == "down"


async def test_a_server_that_evicts_is_told_once(
    running: Server, store: ValkeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with client(running) as seen:
        await seen.config_set("maxmemory", 100_000_000)
        await seen.config_set("maxmemory-policy", "allkeys-lru")
    for _ in range(3):
        await store.ping()
    assert len(caplog.messages) == 1 and "allkeys-lru" in caplog.messages[0] and "noeviction" in caplog.messages[0]
    assert (await store.stats()).max_bytes == 100_000_000
