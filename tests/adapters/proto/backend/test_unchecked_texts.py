"""Texts of proto2, whose runtime does not check that they are UTF-8 (protobuf.dev, "Encoding", strings)."""

from pathlib import Path
from typing import Final

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event, ResponseStart
from gateway.core.notices import Notice
from gateway.protobuf.utf8_repair import MOST_FIELDS
from gateway.settings import check_options
from gateway.testing.events import fold
from gateway.testing.replay import replay
from tests.adapters.proto.backend.services import envelope, frames_u32, grpc_web, varint

_ASKED: Final = Conversation((Turn("user", (Text("?"),), index=0),))
# The bytes of each field.
_TEXT, _END, _ID = 0x0A, b"\x10\x01", 0x1A
_GROUP, _GROUP_END, _LABELS = b"\x23", b"\x24", 0x32


def _text_field(tag: int, value: bytes) -> bytes:
    return bytes([tag]) + varint(len(value)) + value


def _descriptors(syntax: str) -> bytes:
    """One service: a message with a text, an end, a group with a thought and a message, and a map of texts."""
    message = DescriptorProto(name="Answer")
    _string(message, "text", 1)
    message.field.add(name="end", number=2, type=FieldDescriptorProto.TYPE_BOOL, label=1)
    _string(message, "id", 3)
    _string(message, "more", 5, repeated=True)
    group = FieldDescriptorProto.TYPE_GROUP if syntax == "proto2" else FieldDescriptorProto.TYPE_MESSAGE
    message.field.add(name="box", number=4, type=group, label=1, type_name=".acme.old.Answer.Box")
    box = message.nested_type.add(name="Box")
    _string(box, "thought", 1)
    box.field.add(name="deep", number=2, type=11, label=1, type_name=".acme.old.Answer.Box.Deep")
    deep = box.nested_type.add(name="Deep")
    _string(deep, "word", 1)
    entry = message.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    _string(entry, "key", 1)
    _string(entry, "value", 2)
    message.field.add(name="labels", number=6, type=11, label=3, type_name=".acme.old.Answer.LabelsEntry")
    message.field.add(name="numbers", number=7, type=FieldDescriptorProto.TYPE_INT32, label=3)
    asked = DescriptorProto(name="Asked")
    _string(asked, "text", 1)
    file = FileDescriptorProto(name="old.proto", package="acme.old", syntax=syntax, message_type=[asked, message])
    service = file.service.add(name="Old")
    service.method.add(name="Say", input_type=".acme.old.Asked", output_type=".acme.old.Answer", server_streaming=True)
    return FileDescriptorSet(file=[file]).SerializeToString()


def _string(message: DescriptorProto, name: str, number: int, *, repeated: bool = False) -> None:
    label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    message.field.add(name=name, number=number, type=FieldDescriptorProto.TYPE_STRING, label=label)


@pytest.fixture
def old(tmp_path: Path) -> ProtoAdapter:
    """The adapter of a service of proto2."""
    return _adapter(tmp_path, "proto2")


def _adapter(folder: Path, syntax: str, carrier: str = "frames_u32") -> ProtoAdapter:
    (folder / "old.pb").write_bytes(_descriptors(syntax))
    entry: dict[str, Json] = {
        "schema": {"set": str(folder / "old.pb")},
        "carrier": carrier,
        "method": "acme.old.Old/Say",
        "request": {"text": "$prompt"},
        "read": [
            {"start": {"id": "id"}},
            {"text": "text", "reasoning": "box.thought"},
            {"text": 'labels["a"]'},
            {"finish": {"at": "end"}},
        ],
    }
    return ProtoAdapter(check_options(entry, ProtoOptions, "options"), 1 << 20)


def _events(adapter: ProtoAdapter, *messages: bytes) -> list[Event]:
    return replay(adapter.decoder(_ASKED), [frames_u32(messages)])


def _rules(events: list[Event]) -> list[str]:
    return [event.rule for event in events if isinstance(event, Notice)]


def test_a_text_that_is_not_utf8_is_mended_and_told_once(old: ProtoAdapter) -> None:
    found = _events(old, _text_field(_TEXT, b"a\xff"), _text_field(_TEXT, b"\xfeb"), _END)
    assert (fold(found).text, _rules(found)) == ("a\ufffd\ufffdb", ["TEXT_MENDED"])


def test_a_text_that_is_utf8_is_kept(old: ProtoAdapter) -> None:
    found = _events(old, _text_field(_TEXT, "日本\ufffd".encode()), _END)
    assert (fold(found).text, _rules(found)) == ("日本\ufffd", [])


def test_texts_below_groups_and_in_maps_and_ids_are_mended_too(old: ProtoAdapter) -> None:
    deep = _text_field(0x12, _text_field(0x0A, b"\xff" * 200))
    box = _GROUP + _text_field(0x0A, b"h\xffm") + deep + _GROUP_END
    labels = _text_field(_LABELS, _text_field(0x0A, b"a") + _text_field(0x12, b"x\xff"))
    labels += _text_field(_LABELS, _text_field(0x0A, b"\xff") + _text_field(0x12, b"y"))
    found = _events(old, _text_field(_ID, b"r\xff") + box + labels, _END)
    folded = fold(found)
    assert (folded.reasoning, folded.text) == ("h\ufffdm", "x\ufffd")
    assert [event.id for event in found if isinstance(event, ResponseStart)] == ["r\ufffd"]
    assert _rules(found) == ["TEXT_MENDED"]


def test_a_large_text_is_mended(old: ProtoAdapter) -> None:
    found = _events(old, _text_field(_TEXT, b"a" * 200_000 + b"\xff"), _END)
    assert (fold(found).text, _rules(found)) == ("a" * 200_000 + "\ufffd", ["TEXT_MENDED"])


def test_proto3_mends_a_large_text_as_well(tmp_path: Path) -> None:
    found = _events(_adapter(tmp_path, "proto3"), _text_field(_TEXT, b"a" * 200_000 + b"\xff"), _END)
    assert (fold(found).text, _rules(found)) == ("a" * 200_000 + "\ufffd", ["TEXT_MENDED"])


def test_a_message_of_too_many_fields_to_look_at_is_an_error(old: ProtoAdapter) -> None:
    numbers = b"\x38\x01" * MOST_FIELDS
    assert fold(_events(old, numbers + _text_field(_TEXT, b"a"), _END)).text == "a"
    with pytest.raises(BackendError) as failed:
        _events(old, numbers + _text_field(_TEXT, b"\xff"), _END)
    assert failed.value.code == "upstream_invalid_event"


def test_only_a_message_with_other_bytes_than_ascii_is_searched(
    old: ProtoAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(payload: bytes, kind: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("adapters.proto.backend.decoder.with_utf8", refuse)
    assert fold(_events(old, _text_field(_TEXT, b"a"), _END)).text == "a"


def test_over_a_carrier_with_a_status(tmp_path: Path) -> None:
    adapter = _adapter(tmp_path, "proto2", "grpc_web")
    wire = grpc_web([_text_field(_TEXT, b"a\xff"), _END])
    assert wire.startswith(envelope(_text_field(_TEXT, b"a\xff")))
    assert fold(replay(adapter.decoder(_ASKED), [wire])).text == "a\ufffd"
