"""Tests sealed values: bound to tenant, epoch and name, readable after a change of keys, unreadable otherwise."""

import os
import zlib
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import SettingsError
from gateway.server.state.encryption import EncryptedSeal
from gateway.server.state.sealing import (
    COMPRESSED_FROM,
    HEADER,
    LARGEST,
    ChecksumSeal,
    Scope,
    Seal,
    Unreadable,
    pack,
    unpack,
)

OLD: Final = "o" * 32
NEW: Final = "n" * 32
SCOPE: Final = Scope("alice", b"s" * 32)
NAME: Final = b"dg1:name"
SEALS: Final = [pytest.param(ChecksumSeal(), id="checksum"), pytest.param(EncryptedSeal([NEW, OLD]), id="encrypted")]
SECRET: Final = b"the launch code is 0000"


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
