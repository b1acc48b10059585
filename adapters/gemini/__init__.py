"""The adapter for backends that speak Google's generateContent."""

from adapters.gemini.adapter import GeminiAdapter

__all__ = ["GeminiAdapter"]
