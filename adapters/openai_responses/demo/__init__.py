"""Serves a demo backend for OpenAI Responses."""
