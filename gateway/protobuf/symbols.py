"""Indexes the symbols of a descriptor set by full name: services, messages with their fields, enums."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import DecodeError

from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError

# Of these every reader knows the fields.
WELL_KNOWN: Final = "google.protobuf."
_SCALARS: Final = {number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()}


class Field(msgspec.Struct, frozen=True):
    """One field of a message. `type` is as a .proto file writes it: `repeated string`, `required bool`,
    `map<string, int32>`, or a full name, of a group behind the word. `oneof` is the name of its oneof, or empty."""

    number: int
    type: str
    oneof: str = ""


class Method(msgspec.Struct, frozen=True):
    """One method of a service: the full names of its messages, each with `stream ` before it where it is one."""

    request: str
    response: str

    @property
    def messages(self) -> tuple[str, str]:
        """Returns the full names of its messages."""
        return self.request.removeprefix(_STREAM), self.response.removeprefix(_STREAM)


class Symbols(msgspec.Struct, frozen=True):
    """The symbols of a schema by full name, each with its members by name, in the order of the files. `extensions` are
    by the message that they extend, and by their own full names."""

    services: Mapping[str, Mapping[str, Method]]
    messages: Mapping[str, Mapping[str, Field]]
    enums: Mapping[str, Mapping[str, int]]
    extensions: Mapping[str, Mapping[str, Field]] = {}

    def names(self) -> tuple[str, ...]:
        """Returns the names of all symbols, methods as `package.Service/Method`."""
        methods = [f"{service}/{name}" for service, members in self.services.items() for name in members]
        extensions = [name for members in self.extensions.values() for name in members]
        return (*self.services, *methods, *self.messages, *self.enums, *extensions)


_STREAM: Final = "stream "
_GROUP: Final = "group"


def read_symbols(descriptors: DescriptorSet) -> Symbols:
    """Returns the symbols of a set, without those of Google's well-known types. Raises SettingsError for bytes that are
    no FileDescriptorSet."""
    try:
        files = FileDescriptorSet.FromString(descriptors.data).file
    except DecodeError as error:
        raise SettingsError("the file is not a FileDescriptorSet") from error
    own = [file for file in files if file.package != WELL_KNOWN.removesuffix(".")]
    messages = [found for file in own for found in _messages(file.package, file.message_type)]
    enums = [found for file in own for found in _enums(file.package, file.enum_type)]
    enums += [found for name, message in messages for found in _enums(name, message.enum_type)]
    services = [(_joined(file.package, service.name), service) for file in own for service in file.service]
    entries = {name: message for name, message in messages if message.options.map_entry}
    return Symbols(
        {name: _methods(service) for name, service in services},
        {name: _fields(message, entries) for name, message in messages if name not in entries},
        {name: {value.name: value.number for value in enum.value} for name, enum in enums},
        _extensions(own, messages),
    )


def _extensions(
    files: Iterable[FileDescriptorProto], messages: Iterable[tuple[str, DescriptorProto]]
) -> dict[str, dict[str, Field]]:
    scopes = [(name, message.extension) for name, message in messages]
    scopes += [(file.package, file.extension) for file in files]
    found: dict[str, dict[str, Field]] = {}
    for scope, extensions in scopes:
        for field in extensions:
            of_message = found.setdefault(field.extendee.lstrip("."), {})
            of_message[_joined(scope, field.name)] = Field(field.number, _type(field, {}))
    return found


def _messages(scope: str, messages: Iterable[DescriptorProto]) -> Iterator[tuple[str, DescriptorProto]]:
    # A list of what is left, not recursion: a schema of a server may be nested deep.
    waiting = deque((_joined(scope, message.name), message) for message in messages)
    while waiting:
        name, message = waiting.popleft()
        yield name, message
        waiting.extendleft((_joined(name, below.name), below) for below in reversed(message.nested_type))


def _enums(scope: str, enums: Iterable[EnumDescriptorProto]) -> Iterator[tuple[str, EnumDescriptorProto]]:
    return ((_joined(scope, enum.name), enum) for enum in enums)


def _joined(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _methods(service: ServiceDescriptorProto) -> dict[str, Method]:
    return {method.name: _method(method) for method in service.method}


def _method(method: MethodDescriptorProto) -> Method:
    return Method(
        _STREAM * method.client_streaming + method.input_type.lstrip("."),
        _STREAM * method.server_streaming + method.output_type.lstrip("."),
    )


def _fields(message: DescriptorProto, entries: Mapping[str, DescriptorProto]) -> dict[str, Field]:
    return {field.name: Field(field.number, _type(field, entries), _oneof(field, message)) for field in message.field}


def _type(field: FieldDescriptorProto, entries: Mapping[str, DescriptorProto]) -> str:
    name = field.type_name.lstrip(".") or _SCALARS.get(field.type, "unknown")
    if name in entries:
        key, value = entries[name].field
        return f"map<{_type(key, {})}, {_type(value, {})}>"
    features = field.options.features
    if field.type == FieldDescriptorProto.TYPE_GROUP or features.message_encoding == FeatureSet.DELIMITED:
        name = f"{_GROUP} {name}"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {name}"
    if field.label == FieldDescriptorProto.LABEL_REQUIRED or features.field_presence == FeatureSet.LEGACY_REQUIRED:
        return f"required {name}"
    return f"optional {name}" if field.proto3_optional else name


def _oneof(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return message.oneof_decl[field.oneof_index].name
