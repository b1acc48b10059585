"""Encodes a conversation as a Warp request."""
