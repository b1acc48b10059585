"""Wires of backends that speak protobuf: described by a schema and a mapping in settings.json."""

from typing import TYPE_CHECKING

from gateway.moved import moved_name

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved_name(__name__, name)
