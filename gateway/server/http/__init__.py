"""Serves clients: the HTTP/1.1 protocol, its connections, request bodies and responses."""
