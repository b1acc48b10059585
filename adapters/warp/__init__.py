"""The Warp multi-agent wire: protobuf out, protobuf in server-sent events back."""

from adapters.warp.adapter import WarpAdapter

__all__ = ["WarpAdapter"]
