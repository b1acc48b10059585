"""Implements the deterministic model behind every demo backend."""
