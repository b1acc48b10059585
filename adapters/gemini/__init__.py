"""Adapts backends that speak Google's generateContent."""

from adapters.gemini.adapter import GeminiAdapter, GeminiOptions

__all__ = ["GeminiAdapter", "GeminiOptions"]
