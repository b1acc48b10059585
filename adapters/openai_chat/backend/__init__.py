"""Adapts backends that speak OpenAI chat completions; it changes only the fields that the backend requires."""

from adapters.openai_chat.backend.adapter import OpenAIChatAdapter, OpenAIChatOptions

__all__ = ["OpenAIChatAdapter", "OpenAIChatOptions"]
