"""Adapts backends that speak Google's generateContent."""

from adapters.gemini.backend.adapter import GeminiAdapter, GeminiOptions

__all__ = ["GeminiAdapter", "GeminiOptions"]
