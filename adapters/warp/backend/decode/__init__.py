"""Decodes a Warp response into events."""
