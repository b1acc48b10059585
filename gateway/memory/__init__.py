"""Holds what is remembered of conversations, sans-IO: the digests by which one is found again, summaries of old turns,
and the state of a provider; the server stores it."""
