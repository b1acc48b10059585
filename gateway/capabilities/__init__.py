"""Compares what a conversation requires with what the backend declares."""
