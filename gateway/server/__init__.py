"""Serves clients and sends requests to backends: the only package with sockets, a clock, random ids and a log."""
