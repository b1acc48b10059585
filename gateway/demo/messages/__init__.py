"""The demo backend for Anthropic Messages."""
