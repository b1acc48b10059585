"""Replaces the oldest turns of a long conversation by a summary: which turns, by which request, with which checks."""
