"""Decoders of byte streams that are independent of chat."""
