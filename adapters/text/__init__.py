"""The adapter for backends that take one text: how they are asked and how they answer is data."""

from adapters.text.adapter import TextAdapter
from adapters.text.options import TextOptions

__all__ = ["TextAdapter", "TextOptions"]
