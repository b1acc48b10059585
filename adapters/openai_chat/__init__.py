"""The adapter for backends that speak OpenAI chat completions themselves: only what must change changes."""

from adapters.openai_chat.adapter import OpenAIChatAdapter, OpenAIChatOptions

__all__ = ["OpenAIChatAdapter", "OpenAIChatOptions"]
