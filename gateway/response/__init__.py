"""Passes over the events of a response."""
