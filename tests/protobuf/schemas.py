"""Descriptor sets for tests: two versions of an invented schema, built without a compiler."""

from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.text_format import Parse

from gateway.core.descriptor_set import DescriptorSet

SHARED: Final = Parse(
    """
    name: "shared.proto" package: "acme.shared"
    message_type { name: "Counts" field { name: "used" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
    """,
    FileDescriptorProto(),
)
ECHO: Final = Parse(
    """
    name: "echo.proto" package: "acme" syntax: "proto3" dependency: "shared.proto"
    message_type {
      name: "Echo"
      field { name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
      field { name: "data" number: 2 type: TYPE_BYTES label: LABEL_OPTIONAL oneof_index: 0 }
      field { name: "tags" number: 3 type: TYPE_MESSAGE type_name: ".acme.Echo.TagsEntry" label: LABEL_REPEATED }
      field { name: "parts" number: 4 type: TYPE_STRING label: LABEL_REPEATED }
      field { name: "counts" number: 5 type: TYPE_MESSAGE type_name: ".acme.shared.Counts" label: LABEL_OPTIONAL }
      field { name: "mood" number: 6 type: TYPE_ENUM type_name: ".acme.Echo.Mood" label: LABEL_OPTIONAL
              proto3_optional: true oneof_index: 1 }
      field { name: "inner" number: 7 type: TYPE_MESSAGE type_name: ".acme.Echo" label: LABEL_OPTIONAL }
      nested_type {
        name: "TagsEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        field { name: "value" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
      }
      enum_type { name: "Mood" value { name: "CALM" number: 0 } value { name: "LOUD" number: 1 } }
      oneof_decl { name: "content" } oneof_decl { name: "_mood" }
    }
    message_type { name: "Unused" }
    service {
      name: "Echoes"
      method { name: "Say" input_type: ".acme.Echo" output_type: ".acme.Echo" server_streaming: true }
      method { name: "Count" input_type: ".acme.Unused" output_type: ".acme.shared.Counts" }
    }
    """,
    FileDescriptorProto(),
)

# A file of proto2, with what proto3 lacks.
OLD: Final = Parse(
    """
    name: "old.proto" package: "acme" syntax: "proto2"
    message_type {
      name: "Old"
      field { name: "id" number: 1 type: TYPE_STRING label: LABEL_REQUIRED }
      field { name: "result" number: 2 type: TYPE_GROUP type_name: ".acme.Old.Result" label: LABEL_REPEATED }
      nested_type {
        name: "Result"
        field { name: "url" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        extension { name: "rank" number: 101 type: TYPE_INT32 label: LABEL_OPTIONAL extendee: ".acme.Old" }
      }
      extension_range { start: 100 end: 200 }
    }
    message_type { name: "Note" field { name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
    extension { name: "note" number: 100 type: TYPE_MESSAGE type_name: ".acme.Note" label: LABEL_OPTIONAL
                extendee: ".acme.Old" }
    """,
    FileDescriptorProto(),
)
# The same fields as an edition writes them.
EDITION: Final = Parse(
    """
    name: "edition.proto" package: "acme" syntax: "editions" edition: EDITION_2023
    message_type {
      name: "Old"
      field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL
              options { features { field_presence: LEGACY_REQUIRED } } }
      field { name: "result" number: 2 type: TYPE_MESSAGE type_name: ".acme.Old.Result" label: LABEL_REPEATED
              options { features { message_encoding: DELIMITED } } }
      nested_type {
        name: "Result"
        field { name: "url" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
      }
    }
    """,
    FileDescriptorProto(),
)


def descriptors(*files: FileDescriptorProto) -> DescriptorSet:
    return DescriptorSet(FileDescriptorSet(file=files).SerializeToString())
