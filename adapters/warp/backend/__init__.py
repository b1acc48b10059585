"""Adapts backends that speak the Warp multi-agent wire."""

from adapters.warp.backend.adapter import WarpAdapter

__all__ = ["WarpAdapter"]
