"""Keeps state in one SQLite file that all processes of a machine share."""

from gateway.server.state.sqlite.file import SqliteFile, check_file
from gateway.server.state.sqlite.store import SqliteStore

__all__ = ["SqliteFile", "SqliteStore", "check_file"]
