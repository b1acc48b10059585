"""Backends: their credentials, deadlines, and the transport that connects to them."""
