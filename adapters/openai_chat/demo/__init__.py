"""Serves a demo backend for OpenAI chat completions."""
