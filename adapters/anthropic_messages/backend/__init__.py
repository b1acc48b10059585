"""Adapts backends that speak Anthropic Messages; a request of the same API passes unchanged."""

from adapters.anthropic_messages.backend.adapter import AnthropicMessagesAdapter
from adapters.anthropic_messages.backend.options import AnthropicMessagesOptions

__all__ = ["AnthropicMessagesAdapter", "AnthropicMessagesOptions"]
