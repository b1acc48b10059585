"""Runs a client against events of its own protocol, and says what becomes of each."""
