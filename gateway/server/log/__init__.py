"""Logs of one process: the logger and its file, what limits repeated lines, and the id of a request."""
