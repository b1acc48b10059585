"""The Warp multi-agent wire: its backends and its protobuf schema."""

from typing import TYPE_CHECKING

from gateway.moved import moved_name

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved_name(__name__, name)
