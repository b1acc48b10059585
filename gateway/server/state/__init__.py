"""Keeps what the gateway remembers from one request to another: in memory, in a file of SQLite, or on a server."""
