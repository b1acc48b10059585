"""Keeps the latest requests with their bytes in memory, and shows them to the operator."""
