"""Each way in which a schema changes is one difference, with its place."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from gateway.protobuf.differences import differences
from gateway.protobuf.symbols import read_symbols
from tests.protobuf.schemas import ECHO, OLD, SHARED, descriptors

# Any: the stubs of descriptors know no such nesting of calls.
Change = Callable[[Any], object]


def changed(change: Change) -> FileDescriptorProto:
    newer = FileDescriptorProto()
    newer.CopyFrom(ECHO)
    change(newer)
    return newer


def lines(before: FileDescriptorProto, after: FileDescriptorProto) -> list[str]:
    first, second = read_symbols(descriptors(before, SHARED)), read_symbols(descriptors(after, SHARED))
    return [difference.text() for difference in differences(first, second)]


@pytest.mark.parametrize(
    ("change", "line", "reverse"),
    [
        (
            lambda file: file.message_type[0].field.add(name="more", number=9, type=FieldDescriptorProto.TYPE_BOOL),
            "acme.Echo.more: added: bool = 9",
            "acme.Echo.more: removed: bool = 9",
        ),
        (
            lambda file: setattr(file.message_type[0].field[3], "number", 8),
            "acme.Echo.parts: renumbered: 4 -> 8",
            "acme.Echo.parts: renumbered: 8 -> 4",
        ),
        (
            lambda file: setattr(file.message_type[0].field[3], "type", FieldDescriptorProto.TYPE_BYTES),
            "acme.Echo.parts: retyped: repeated string -> repeated bytes",
            "acme.Echo.parts: retyped: repeated bytes -> repeated string",
        ),
        (
            lambda file: setattr(file.message_type[0].nested_type[0].field[1], "type", FieldDescriptorProto.TYPE_BOOL),
            "acme.Echo.tags: retyped: map<string, int64> -> map<string, bool>",
            "acme.Echo.tags: retyped: map<string, bool> -> map<string, int64>",
        ),
        (
            lambda file: file.message_type[0].field[1].ClearField("oneof_index"),
            "acme.Echo.data: moved: content -> none",
            "acme.Echo.data: moved: none -> content",
        ),
        (
            lambda file: setattr(file.message_type[0].enum_type[0].value[1], "number", 2),
            "acme.Echo.Mood.LOUD: renumbered: 1 -> 2",
            "acme.Echo.Mood.LOUD: renumbered: 2 -> 1",
        ),
        (
            lambda file: file.message_type[0].enum_type[0].value.add(name="SAD", number=3),
            "acme.Echo.Mood.SAD: added: 3",
            "acme.Echo.Mood.SAD: removed: 3",
        ),
        (lambda file: file.message_type.add(name="New"), "acme.New: added", "acme.New: removed"),
        (
            lambda file: setattr(file.service[0].method[0], "server_streaming", False),
            "acme.Echoes/Say: retyped: (acme.Echo) returns (stream acme.Echo) -> (acme.Echo) returns (acme.Echo)",
            "acme.Echoes/Say: retyped: (acme.Echo) returns (acme.Echo) -> (acme.Echo) returns (stream acme.Echo)",
        ),
    ],
)
def test_a_change_is_one_difference_in_either_direction(change: Change, line: str, reverse: str) -> None:
    newer = changed(change)
    assert lines(ECHO, newer) == [line]
    assert lines(newer, ECHO) == [reverse]


def test_a_schema_does_not_differ_from_itself() -> None:
    assert lines(ECHO, ECHO) == []


def test_a_field_that_becomes_required_and_an_extension_that_is_renumbered_are_differences() -> None:
    newer = FileDescriptorProto()
    newer.CopyFrom(OLD)
    newer.extension[0].number = 150
    newer.message_type[0].field[0].label = FieldDescriptorProto.LABEL_OPTIONAL
    first, second = read_symbols(descriptors(OLD)), read_symbols(descriptors(newer))
    assert [difference.text() for difference in differences(first, second)] == [
        "acme.Old.id: retyped: required string -> string",
        "acme.Old.[acme.note]: renumbered: 100 -> 150",
    ]
