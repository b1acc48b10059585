"""The descriptors of a protobuf schema, as a value that adapters receive instead of files."""

import msgspec


class DescriptorSet(msgspec.Struct, frozen=True):
    """`data` is a serialized `google.protobuf.FileDescriptorSet` (descriptor.proto).

    An adapter's option of this type names files in settings.json; the settings read them once, at start.
    """

    data: bytes
