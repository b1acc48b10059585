"""A schema is loaded into a pool of its own, whatever the order of its files."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from adapters.proto.backend import schema as loader
from adapters.proto.backend.schema import Schema, message_class
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import OptionError
from gateway.settings.descriptor_files import read_descriptor_set
from tests.adapters.proto.backend import services


def loaded(files: list[FileDescriptorProto]) -> Schema:
    return Schema(DescriptorSet(FileDescriptorSet(file=files).SerializeToString()))


def test_the_set_is_what_the_sources_compile_to() -> None:
    sources = [str(path) for path in sorted(services.SOURCES.glob("*.proto"))]
    assert read_descriptor_set({"files": list(sources)}, "schema").data == services.SET.read_bytes()


def test_the_order_of_files_does_not_matter_and_pools_share_nothing() -> None:
    files = FileDescriptorSet.FromString(services.SET.read_bytes()).file
    one, other = loaded(list(files)), loaded(list(reversed(files)))
    methods = [found.method("acme.parts.v1.Parts/Answer") for found in (one, other)]
    assert message_class(methods[0].request) is not message_class(methods[1].request)
    assert [method.path for method in methods] == ["/acme.parts.v1.Parts/Answer"] * 2


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "schema: the set has 0 files"),
        ([FileDescriptorProto(name="a", dependency=["b"])], "schema: 'a' imports 'b', which the set lacks"),
        (
            [FileDescriptorProto(name="a", dependency=["b"]), FileDescriptorProto(name="b", dependency=["a"])],
            "schema: the imports of",
        ),
        ([FileDescriptorProto(name="a", syntax="proto9")], "schema: the file 'a' cannot be loaded"),
    ],
)
def test_a_set_that_cannot_be_loaded_is_refused(files: list[FileDescriptorProto], said: str) -> None:
    with pytest.raises(OptionError) as refused:
        loaded(files)
    assert refused.value.message.startswith(said)


def test_what_is_no_set_and_a_set_of_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="schema: the file is not a FileDescriptorSet"):
        Schema(DescriptorSet(b"\xff"))
    monkeypatch.setattr(loader, "MAX_FILES", 3)
    with pytest.raises(OptionError, match="schema: the set has 11 files; it may have 1 to 3"):
        services.schema()
