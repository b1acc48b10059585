"""Handles tool calls independently of backends and dialects."""
