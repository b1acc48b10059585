"""Holds what is remembered of conversations, sans-IO: summaries of old turns, and the state of a provider; the server
stores it."""
