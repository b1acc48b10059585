"""Writes summaries of long histories beside the requests that need them, and finds the summary that fits a request."""
