"""Tests the bytes of a record."""

import msgspec
import pytest

from gateway.memory.summaries.summary import (
    CallEntry,
    Cost,
    Item,
    Known,
    Producer,
    RecordUnreadable,
    SummaryContent,
    SummaryRecord,
    Words,
    decode_record,
)

RECORD = SummaryRecord(
    tenant="team",
    digest=bytes(16),
    turns=40,
    root=bytes(range(16)),
    generation=2,
    parent=None,
    prompt_version=1,
    created=1_790_000_000.5,
    producer=Producer("assistant", "local", "small", "req_1"),
    cost=Cost(12_000, 800, False, 4_200, 40_000, 1_500),
    content=SummaryContent((Item("facts", "The host is db-3.", (4, 7), True),), dropped=1),
    known=Known((Words(1, "user", "Never push."),), (CallEntry(2, "read", "{}", False, 900),), 3, 4),
    text="[Summary]",
)


def test_a_record_is_read_back_and_has_the_same_bytes_each_time() -> None:
    assert decode_record(RECORD.encode()) == RECORD
    assert decode_record(RECORD.encode()).encode() == RECORD.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        RECORD.encode()[:-1],
        RECORD.encode() + b"\0",
        msgspec.msgpack.encode({"form": 1}),
        msgspec.structs.replace(RECORD, form=2).encode(),
        RECORD.encode().replace(b"Never", b"N\xffver"),
    ],
)
def test_other_bytes_are_no_record(data: bytes) -> None:
    with pytest.raises(RecordUnreadable):
        decode_record(data)


def test_a_field_of_a_later_version_is_no_fault() -> None:
    written = msgspec.msgpack.decode(RECORD.encode())
    assert decode_record(msgspec.msgpack.encode({**written, "later": 1})) == RECORD
