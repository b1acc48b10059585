"""A schema is read from a descriptor set, or compiled from .proto files, when the settings are read."""

import importlib.util
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import descriptor_files
from gateway.settings.descriptor_files import read_descriptor_set

PROTO = 'syntax = "proto3";\npackage a;\nimport "below/b.proto";\nmessage A { b.B b = 1; }\n'
BELOW = 'syntax = "proto3";\npackage b;\nmessage B { string text = 1; }\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "shared" / "below").mkdir(parents=True)
    (tmp_path / "shared" / "below" / "b.proto").write_text(BELOW)
    (tmp_path / "own").mkdir()
    path = tmp_path / "own" / "a.proto"
    path.write_text(PROTO)
    return path


def test_files_are_compiled_with_their_imports(source: Path) -> None:
    include = str(source.parent.parent / "shared")
    found = read_descriptor_set({"files": [str(source)], "include": [include]}, "schema")
    assert [file.name for file in FileDescriptorSet.FromString(found.data).file] == ["below/b.proto", "a.proto"]


def test_an_import_that_is_not_found_is_told_with_what_to_do(source: Path) -> None:
    with pytest.raises(SettingsError, match=r"^schema\.files: .*below/b\.proto.*name the folder.*`include`"):
        read_descriptor_set({"files": [str(source)]}, "schema")


def test_a_set_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.pb").write_bytes(b"bytes")
    assert read_descriptor_set({"set": str(tmp_path / "x.pb")}, "schema").data == b"bytes"


def test_a_set_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.pb").write_bytes(b"bytes")
    monkeypatch.setattr(descriptor_files, "LARGEST", 4)
    with pytest.raises(SettingsError, match="the descriptors have 5 bytes; 4 are allowed"):
        read_descriptor_set({"set": str(tmp_path / "x.pb")}, "schema")


def test_files_without_a_compiler_name_the_extra(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r'^schema\.files: protoc is missing: pip install "dragoman\[proto\]"'):
        read_descriptor_set({"files": [str(source)]}, "schema")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({}, "schema must name one of `set`, `files` and `reflection`"),
        ({"set": "x.pb", "files": ["x.proto"]}, "schema must name one of `set`, `files` and `reflection`"),
        ({"set": "x.pb", "include": ["."]}, "schema.include belongs to `files`"),
        ({"set": "x.pb", "reflection": True}, "schema must name one of"),
        ({"set": "x.pb", "cache": "y.pb"}, "schema.cache belongs to `reflection`, which needs it"),
        ({"reflection": True}, "schema.cache belongs to `reflection`, which needs it"),
        (
            {"reflection": True, "cache": "no/such.pb"},
            "schema.cache: there is no file 'no/such.pb' yet; `dragoman serve` and `dragoman schema fetch` write it",
        ),
        ({"set": "no/such.pb"}, "schema.set: 'no/such.pb' cannot be read: No such file"),
        ({"files": ["no/such.proto"]}, "schema.files: there is no file 'no/such.proto'"),
        ({"sat": "x.pb"}, "unknown setting 'schema.sat'; did you mean 'set'?"),
        ([], "schema must be an object"),
    ],
)
def test_a_wrong_source_is_named(written: Json, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_descriptor_set(written, "schema")
    assert refused.value.message.startswith(said)


def test_a_file_that_does_not_compile_is_told_with_its_line(source: Path) -> None:
    source.write_text('syntax = "proto3";\nmessage A { txt b = 1; }\n')
    with pytest.raises(SettingsError, match=r'^schema\.files: .*a\.proto:2:13: "txt" is not defined'):
        read_descriptor_set({"files": [str(source)]}, "schema")
