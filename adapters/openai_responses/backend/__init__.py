"""Adapts backends that speak OpenAI Responses."""

from adapters.openai_responses.backend.adapter import OpenAIResponsesAdapter, OpenAIResponsesOptions

__all__ = ["OpenAIResponsesAdapter", "OpenAIResponsesOptions"]
