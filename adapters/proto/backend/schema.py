"""Loads a protobuf schema at run time, into a pool of its own.

Two backends may have files of the same name, so that none is added to protobuf's default pool. (Source of the rules:
protobuf.dev, "Techniques", self-describing messages.)
"""

from typing import Any, Final, TypeAlias

import msgspec
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from gateway.core.descriptor_set import DescriptorSet
from gateway.protobuf.utf8_repair import has_unchecked_texts

# The stubs define two classes of descriptors, and each returns instances of either.
MessageType: TypeAlias = Any
Field: TypeAlias = Any

MAX_FILES: Final = 500


class Method(msgspec.Struct, frozen=True):
    """One method of a service. `path` is that of gRPC: `/package.Service/Method`. `unchecked_texts`: the runtime takes
    texts of the response that are not UTF-8."""

    path: str
    request: MessageType
    response: MessageType
    streams_requests: bool
    streams_responses: bool
    unchecked_texts: bool


class Schema:
    """The messages and services of one descriptor set. Raises OptionError for a set that cannot be loaded."""

    def __init__(self, descriptors: DescriptorSet) -> None:
        self._pool = DescriptorPool()
        self._services: dict[str, Any] = {}
        for file in _in_order(_files(descriptors)):
            try:
                self._pool.Add(file)
                found = self._pool.FindFileByName(file.name)
            except (TypeError, KeyError) as error:
                raise mapping_error("schema", f"the file {file.name!r} cannot be loaded: {error}") from error
            self._services |= {service.full_name: service for service in found.services_by_name.values()}

    def methods(self) -> tuple[str, ...]:
        """Returns all methods as `package.Service/Method`."""
        return tuple(f"{name}/{method}" for name, found in self._services.items() for method in found.methods_by_name)

    def method(self, written: str) -> Method:
        """Returns the method that `package.Service/Method` names. Raises OptionError with the nearest name."""
        service, _, name = written.partition("/")
        if service not in self._services:
            raise unknown_name("method", f"the schema has no service {service!r}", service, self._services)
        found = self._services[service].methods_by_name.get(name)
        if found is None:
            known = [f"{service}/{other}" for other in self._services[service].methods_by_name]
            raise unknown_name("method", f"{service} has no method {name!r}", written, known)
        return Method(
            f"/{written}",
            found.input_type,
            found.output_type,
            found.client_streaming,
            found.server_streaming,
            has_unchecked_texts(found.output_type),
        )


def message_class(kind: MessageType) -> type[Message]:
    """Returns the class of a message type."""
    return GetMessageClass(kind)


def _files(descriptors: DescriptorSet) -> dict[str, FileDescriptorProto]:
    try:
        files = FileDescriptorSet.FromString(descriptors.data).file
    except DecodeError as error:
        raise mapping_error("schema", "the file is not a FileDescriptorSet") from error
    if not 0 < len(files) <= MAX_FILES:
        raise mapping_error("schema", f"the set has {len(files)} files; it may have 1 to {MAX_FILES}")
    return {file.name: file for file in files}


def _in_order(files: dict[str, FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Returns the files, each after its imports."""
    ordered: dict[str, FileDescriptorProto] = {}
    waiting = list(reversed(files.values()))
    opened: set[str] = set()
    while waiting:
        file = waiting[-1]
        missing = [name for name in file.dependency if name not in ordered]
        if file.name in ordered or not missing:
            ordered.setdefault(file.name, file)
            waiting.pop()
            continue
        for name in missing:
            if name not in files:
                raise mapping_error(
                    "schema", f"{file.name!r} imports {name!r}, which the set lacks (protoc --include_imports adds it)"
                )
        if file.name in opened:
            raise mapping_error("schema", f"the imports of {file.name!r} form a cycle")
        opened.add(file.name)
        waiting += [files[name] for name in missing]
    return list(ordered.values())
