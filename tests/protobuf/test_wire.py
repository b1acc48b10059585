"""Numbers and fields as protobuf itself writes them."""

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, UninterpretedOption

from gateway.protobuf.wire import LENGTH, VARINT, fields, read_varint, varint


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 16_383, 16_384, 2**31 - 1])
def test_a_number_is_written_and_read_as_protobuf_does(number: int) -> None:
    written = FieldDescriptorProto(number=number).SerializeToString()[1:]
    assert varint(number) == written
    assert read_varint(b"\x00" + written + b"\x00", 1) == (number, 1 + len(written))


@pytest.mark.parametrize("written", [b"", b"\x80", b"\xff\xff"])
def test_a_number_without_its_end_is_none(written: bytes) -> None:
    with pytest.raises(IndexError):
        read_varint(written, 0)


def test_the_fields_of_a_message_are_found_without_its_schema() -> None:
    option = UninterpretedOption(identifier_value="name", positive_int_value=300, double_value=1.5)
    payload = option.SerializeToString()
    found = [(number, kind, payload[begin:end]) for number, kind, (begin, end) in fields(payload, 0, len(payload))]
    assert found == [(3, LENGTH, b"name"), (4, VARINT, b"\xac\x02"), (6, 1, b"\0\0\0\0\0\0\xf8?")]


def test_what_is_inside_a_group_follows_its_begin() -> None:
    payload = b"\x0b\x10\x05\x0c\x25abcd"
    found = [(number, kind) for number, kind, _ in fields(payload, 0, len(payload))]
    assert found == [(1, 3), (2, VARINT), (1, 4), (4, 5)]


def test_bytes_that_are_no_message_are_told() -> None:
    with pytest.raises(KeyError):
        list(fields(b"\x0f", 0, 1))
