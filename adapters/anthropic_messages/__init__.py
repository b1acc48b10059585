"""Adapts backends that speak Anthropic Messages; a request of the same API passes unchanged."""

from adapters.anthropic_messages.adapter import AnthropicMessagesAdapter
from adapters.anthropic_messages.options import AnthropicMessagesOptions

__all__ = ["AnthropicMessagesAdapter", "AnthropicMessagesOptions"]
