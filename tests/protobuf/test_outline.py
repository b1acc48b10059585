import pytest

from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.protobuf.outline import outline
from gateway.protobuf.symbols import read_symbols
from tests.protobuf.schemas import ECHO, EDITION, OLD, SHARED, descriptors

SYMBOLS = read_symbols(descriptors(ECHO, SHARED))
ECHO_TEXT = """\
message acme.Echo
  oneof content
    string text = 1
    bytes data = 2
  map<string, int64> tags = 3
  repeated string parts = 4
  acme.shared.Counts counts = 5
  optional acme.Echo.Mood mood = 6
  acme.Echo inner = 7
"""
COUNTS_TEXT = """\
message acme.shared.Counts
  int32 used = 1
"""
MOOD_TEXT = """\
enum acme.Echo.Mood
  CALM = 0
  LOUD = 1
"""
SAY = "  rpc Say(acme.Echo) returns (stream acme.Echo)\n"
COUNT = "  rpc Count(acme.Unused) returns (acme.shared.Counts)\n"


@pytest.mark.parametrize(
    ("symbol", "blocks"),
    [
        (
            None,
            [f"service acme.Echoes\n{SAY}{COUNT}", ECHO_TEXT, "message acme.Unused\n", COUNTS_TEXT, MOOD_TEXT],
        ),
        ("acme.Echoes/Say", [f"service acme.Echoes\n{SAY}", ECHO_TEXT, COUNTS_TEXT, MOOD_TEXT]),
        ("acme.Echoes/Count", [f"service acme.Echoes\n{COUNT}", "message acme.Unused\n", COUNTS_TEXT]),
        ("acme.Echo", [ECHO_TEXT, COUNTS_TEXT, MOOD_TEXT]),
        ("acme.Echo.Mood", [MOOD_TEXT]),
    ],
)
def test_an_outline_has_the_symbol_and_the_types_that_it_uses(symbol: str | None, blocks: list[str]) -> None:
    assert outline(SYMBOLS, symbol) == "\n".join(blocks)


@pytest.mark.parametrize("symbol", ["acme.Ecko", "acme.Echoes/Sey", "acme.Echo.TagsEntry"])
def test_an_unknown_symbol_is_refused_with_the_nearest(symbol: str) -> None:
    with pytest.raises(SettingsError, match=r"did you mean 'acme\.Echo"):
        outline(SYMBOLS, symbol)


def test_bytes_that_are_no_descriptor_set_are_refused() -> None:
    with pytest.raises(SettingsError, match="not a FileDescriptorSet"):
        read_symbols(DescriptorSet(b"\x0a\xff"))


def test_the_types_of_google_are_left_out() -> None:
    from google.protobuf import struct_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    struct = FileDescriptorProto()
    struct_pb2.DESCRIPTOR.CopyToProto(struct)
    assert outline(read_symbols(descriptors(struct, SHARED))) == COUNTS_TEXT


OLD_TEXT = """\
message acme.Old
  required string id = 1
  repeated group acme.Old.Result result = 2
"""
EXTEND_TEXT = """\
extend acme.Old
  int32 [acme.Old.Result.rank] = 101
  acme.Note [acme.note] = 100
"""
RESULT_TEXT = """\
message acme.Old.Result
  string url = 1
"""
NOTE_TEXT = """\
message acme.Note
  string text = 1
"""


@pytest.mark.parametrize("symbol", [None, "acme.Old"])
def test_an_outline_has_required_fields_groups_and_extensions(symbol: str | None) -> None:
    shown = outline(read_symbols(descriptors(OLD)), symbol)
    assert shown == "\n".join([OLD_TEXT, EXTEND_TEXT, RESULT_TEXT, NOTE_TEXT])


def test_an_extension_is_a_symbol() -> None:
    shown = outline(read_symbols(descriptors(OLD)), "acme.note")
    assert shown == "\n".join(["extend acme.Old\n  acme.Note [acme.note] = 100\n", NOTE_TEXT])


def test_an_edition_writes_required_fields_and_groups_as_features() -> None:
    assert outline(read_symbols(descriptors(EDITION))) == "\n".join([OLD_TEXT, RESULT_TEXT])
