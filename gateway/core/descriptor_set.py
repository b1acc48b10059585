"""Defines the descriptors of a protobuf schema as a value that adapters receive instead of files."""

import hashlib

import msgspec


class DescriptorSet(msgspec.Struct, frozen=True):
    """`data` is a serialized `google.protobuf.FileDescriptorSet` (descriptor.proto), `source` where it comes from.

    An adapter's option of this type names files in settings.json; the settings read them once, at start.
    """

    data: bytes
    source: str = ""

    @property
    def sha256(self) -> str:
        """Returns the digest of the data, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()
