"""Adapts backends that take one text; data describes their requests and responses."""

from adapters.text.adapter import TextAdapter
from adapters.text.options import TextOptions

__all__ = ["TextAdapter", "TextOptions"]
