"""Tests a store whose values are sealed: unreadable below, and a counted miss where they cannot be opened."""

import os
from collections import Counter
from typing import Final

import msgspec
import pytest

from gateway.server.state.encryption import EncryptedSeal
from gateway.server.state.memory import MemoryStore
from gateway.server.state.sealed_store import THREAD_FROM, SealedStore
from gateway.server.state.sealing import ChecksumSeal, Seal
from gateway.server.state.store import ABSENT, Entry, Put, Space

SECRET: Final = b"the launch code is 0000"
SIZES: Final = (0, 100, THREAD_FROM, 3 * THREAD_FROM)


class Opened(msgspec.Struct, frozen=True):
    """A sealed store, the store below it, and what the former could not read."""

    store: SealedStore
    below: MemoryStore
    unreadable: Counter[str]


def opened(seal: Seal, below: MemoryStore | None = None) -> Opened:
    unreadable = Counter[str]()
    below = below or MemoryStore(2**22, lambda *_: None)
    return Opened(
        SealedStore(below, seal, lambda space, reason: unreadable.update([f"{space} {reason}"])), below, unreadable
    )


async def damaged(found: Opened, space: Space, key: bytes, data: bytes) -> None:
    await found.below.put("a", Put(space, key, data, 60))


@pytest.mark.parametrize("size", SIZES)
async def test_the_store_below_sees_nothing_of_a_value(size: int) -> None:
    found = opened(EncryptedSeal(["k" * 32]))
    data = SECRET + os.urandom(size)
    await found.store.put("a", Put("sum", b"k", data, 60))
    [below] = await found.below.get("a", "sum", [b"k"])
    [above] = await found.store.get("a", "sum", [b"k"])
    assert above is not None and above.data == data
    assert below is not None and SECRET[:6] not in below.data and above.version == below.version


@pytest.mark.parametrize("seal", [ChecksumSeal(), EncryptedSeal(["k" * 32])], ids=["checksum", "encrypted"])
async def test_a_damaged_or_moved_value_is_a_counted_miss_and_stays(seal: Seal) -> None:
    found = opened(seal)
    for key in (b"good", b"flipped", b"cut"):
        await found.store.put("a", Put("sum", key, SECRET, 60))
    good, flipped, cut = (
        entry.data for entry in await found.below.get("a", "sum", [b"good", b"flipped", b"cut"]) if entry
    )
    await damaged(found, "sum", b"flipped", flipped[:-1] + bytes([flipped[-1] ^ 1]))
    await damaged(found, "sum", b"cut", cut[:-1])
    await damaged(found, "sum", b"moved", good)
    await damaged(found, "rsp", b"good", good)
    await damaged(found, "sum", b"foreign", b"foreign")
    keys = [b"good", b"flipped", b"cut", b"moved", b"foreign", b"absent"]
    entries = await found.store.get("a", "sum", keys)
    assert [entry and entry.data for entry in entries] == [SECRET, None, None, None, None, None]
    assert await found.store.get("a", "rsp", [b"good"]) == [None]
    assert found.unreadable == {"sum seal": 3, "sum form": 1, "rsp seal": 1}
    assert not await found.store.put("a", Put("sum", b"moved", b"new", 60, ABSENT))
    assert (await found.below.get("a", "sum", [b"flipped"]))[0] is not None


async def test_another_tenants_value_cannot_be_read() -> None:
    found = opened(EncryptedSeal(["k" * 32]))
    await found.store.put("a", Put("sum", b"k", SECRET, 60))
    [entry] = await found.below.get("a", "sum", [b"k"])
    assert entry is not None
    await found.below.put("b", Put("sum", b"k", entry.data, 60))
    assert await found.store.get("b", "sum", [b"k"]) == [None]


async def test_two_versions_with_other_keys_and_forms_miss_without_an_error() -> None:
    """A rollout: each gateway reads what it can, and none disturbs the other's entries."""
    old = opened(EncryptedSeal(["o" * 32]))
    new, open_ = opened(EncryptedSeal(["n" * 32]), old.below), opened(ChecksumSeal(), old.below)
    for number, found in enumerate((old, new, open_)):
        await found.store.put("a", Put("sum", b"%d" % number, SECRET, 60))
    for number, found in enumerate((old, new, open_)):
        entries = await found.store.get("a", "sum", [b"0", b"1", b"2"])
        assert [isinstance(entry, Entry) for entry in entries] == [other == number for other in range(3)]
    assert old.unreadable == new.unreadable == {"sum key": 1, "sum form": 1}
    assert open_.unreadable == {"sum form": 2}
