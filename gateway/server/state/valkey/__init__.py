"""Keeps state on a Valkey or Redis server that several machines share (needs the extra `valkey`)."""
