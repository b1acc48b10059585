"""Sends the questions of `dragoman doctor` to a backend, and opens connections to its addresses."""
