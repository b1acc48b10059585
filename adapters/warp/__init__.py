"""Adapts backends that speak the Warp multi-agent wire."""

from adapters.warp.adapter import WarpAdapter

__all__ = ["WarpAdapter"]
