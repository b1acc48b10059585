"""The demo backend for OpenAI Responses."""
