"""Keeps state in one SQLite file that all processes of a machine share."""

from gateway.server.state.sqlite.budgets import SqliteBudgets
from gateway.server.state.sqlite.file import check_file
from gateway.server.state.sqlite.limits import SqliteLimits
from gateway.server.state.sqlite.store import SqliteStore

__all__ = ["SqliteBudgets", "SqliteLimits", "SqliteStore", "check_file"]
