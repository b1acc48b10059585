"""Serves a demo backend for Anthropic Messages."""
