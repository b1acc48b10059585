"""Bytes machines that know nothing of chat."""
