"""Limits on the length of a history: the plan, its application, and truncated tool results."""
