"""Adapts backends that take one text; data describes their requests and responses."""

from adapters.text.backend.adapter import TextAdapter
from adapters.text.backend.options import TextOptions

__all__ = ["TextAdapter", "TextOptions"]
