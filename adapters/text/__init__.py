"""Wires of backends that take one text: described by data."""

from typing import TYPE_CHECKING

from gateway.moved import moved_name

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved_name(__name__, name)
