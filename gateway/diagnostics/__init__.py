"""Diagnoses a request without sending it: explain and lint."""
