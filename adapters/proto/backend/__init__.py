"""Adapts backends that speak protobuf, by a schema and a mapping in settings.json."""

from adapters.proto.backend.adapter import ProtoAdapter
from adapters.proto.backend.options import ProtoOptions

__all__ = ["ProtoAdapter", "ProtoOptions"]
