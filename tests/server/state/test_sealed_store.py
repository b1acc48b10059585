"""Tests sealed values: bound to tenant, epoch and name, readable after a change of keys, unreadable otherwise."""

import os
import zlib
from collections import Counter
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import SettingsError
from gateway.server.state.encryption import EncryptedSeal
from gateway.server.state.memory import MemoryStore
from gateway.server.state.sealed_store import (
    COMPRESSED_FROM,
    HEADER,
    LARGEST,
    THREAD_FROM,
    ChecksumSeal,
    Scope,
    Seal,
    SealedStore,
    Unreadable,
    pack,
    unpack,
)
from gateway.server.state.store import ABSENT, Entry, Put, Space

OLD: Final = "o" * 32
NEW: Final = "n" * 32
SCOPE: Final = Scope("alice", b"s" * 32)
NAME: Final = b"dg1:name"
SEALS: Final = [pytest.param(ChecksumSeal(), id="checksum"), pytest.param(EncryptedSeal([NEW, OLD]), id="encrypted")]
SECRET: Final = b"the launch code is 0000"
SIZES: Final = (0, 100, THREAD_FROM, 3 * THREAD_FROM)


def _reason(seal: Seal, scope: Scope, name: bytes, sealed: bytes) -> str:
    with pytest.raises(Unreadable) as raised:
        seal.open(scope, name, sealed)
    return raised.value.reason


@pytest.mark.parametrize("seal", SEALS)
@pytest.mark.parametrize("size", [0, 1, COMPRESSED_FROM - 1, COMPRESSED_FROM, 100_000])
@pytest.mark.parametrize("content", ["even", "random"])
def test_a_value_comes_back(seal: Seal, size: int, content: str) -> None:
    data = bytes(size) if content == "even" else os.urandom(size)
    sealed = seal.seal(SCOPE, NAME, data)
    assert seal.open(SCOPE, NAME, sealed) == data
    assert len(sealed) <= size + 34
    assert content == "random" or size < COMPRESSED_FROM or len(sealed) < size / 10


@pytest.mark.parametrize("seal", SEALS)
@given(data=st.data())
def test_no_other_bytes_open(seal: Seal, data: st.DataObject) -> None:
    sealed = seal.seal(SCOPE, NAME, SECRET * 60)
    at = data.draw(st.integers(0, len(sealed) - 1))
    flipped = bytearray(sealed)
    flipped[at] ^= data.draw(st.integers(1, 255))
    _reason(seal, SCOPE, NAME, bytes(flipped))
    _reason(seal, SCOPE, NAME, sealed[:at])
    _reason(seal, SCOPE, NAME, data.draw(st.binary(max_size=80)))


@pytest.mark.parametrize("seal", SEALS)
@pytest.mark.parametrize(
    ("scope", "name"), [(Scope("bob", SCOPE.salt), NAME), (SCOPE, NAME + b"x"), (SCOPE, NAME[:-1])]
)
def test_a_value_opens_for_its_own_tenant_and_name_only(seal: Seal, scope: Scope, name: bytes) -> None:
    assert _reason(seal, scope, name, seal.seal(SCOPE, NAME, SECRET)) == "seal"


def test_a_forgotten_epoch_cannot_be_read_with_the_operators_key() -> None:
    seal = EncryptedSeal([NEW])
    assert _reason(seal, Scope("alice", b"t" * 32), NAME, seal.seal(SCOPE, NAME, SECRET)) == "seal"


def test_an_encrypted_value_shows_nothing_and_is_never_the_same_twice() -> None:
    seal = EncryptedSeal([NEW])
    one, two = (seal.seal(SCOPE, NAME, SECRET) for _ in range(2))
    assert one != two
    assert not any(SECRET[at : at + 4] in one for at in range(len(SECRET) - 3))


def test_the_first_key_writes_and_all_read() -> None:
    before, during, after = EncryptedSeal([OLD]), EncryptedSeal([NEW, OLD]), EncryptedSeal([NEW])
    by_old, by_new = before.seal(SCOPE, NAME, SECRET), during.seal(SCOPE, NAME, SECRET)
    assert during.open(SCOPE, NAME, by_old) == during.open(SCOPE, NAME, by_new) == SECRET
    assert after.open(SCOPE, NAME, by_new) == SECRET
    assert _reason(after, SCOPE, NAME, by_old) == _reason(before, SCOPE, NAME, by_new) == "key"


def test_what_another_version_wrote_is_of_an_unknown_form() -> None:
    checked, encrypted = ChecksumSeal(), EncryptedSeal([NEW])
    assert _reason(encrypted, SCOPE, NAME, checked.seal(SCOPE, NAME, SECRET)) == "form"
    assert _reason(checked, SCOPE, NAME, encrypted.seal(SCOPE, NAME, SECRET)) == "form"
    assert _reason(checked, SCOPE, NAME, b"") == _reason(encrypted, SCOPE, NAME, b"") == "form"
    with pytest.raises(Unreadable, match="form"):
        unpack(2, SECRET)


@pytest.mark.parametrize("keys", [[], ["short"], [NEW, ""]])
def test_a_missing_or_guessable_key_is_refused(keys: list[str]) -> None:
    with pytest.raises(SettingsError, match="at least 32 characters"):
        EncryptedSeal(keys)


def test_a_value_that_grows_without_end_is_not_unpacked() -> None:
    flags, packed = pack(bytes(LARGEST + 1))
    with pytest.raises(Unreadable, match="seal"):
        unpack(flags, packed)
    with pytest.raises(Unreadable, match="seal"):
        unpack(flags, packed[:40])
    with pytest.raises(Unreadable, match="seal"):
        unpack(flags, b"no zlib")


def test_the_stored_form_stays_what_it_is() -> None:
    """A change here makes what running gateways have stored unreadable: it needs a new number of the form."""
    sealed = ChecksumSeal().seal(SCOPE, NAME, SECRET)
    assert sealed[:HEADER] == b"\x01\x00\x00\x00\x00\x00" and sealed.endswith(SECRET)
    assert sealed.hex() == CHECKED
    assert EncryptedSeal([NEW]).open(SCOPE, NAME, bytes.fromhex(ENCRYPTED)) == SECRET
    assert zlib.decompress(ChecksumSeal().seal(SCOPE, NAME, bytes(2000))[HEADER + 16 :]) == bytes(2000)


CHECKED: Final = "0100000000002e7de882c0023d9ea866a05aad0b8704746865206c61756e636820636f64652069732030303030"


ENCRYPTED: Final = (
    "0200babcc6558a26533e3acc742ff1336b3846cdaef0c1692b285dff496cf5eebc4bd0d4be1f8ea1af7dea424f07092e1369a91d287cf51061"
)


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
