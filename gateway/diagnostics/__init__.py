"""Diagnoses requests and settings without sending anything: explain, lint, checks of a backend's entry, the doctor."""
