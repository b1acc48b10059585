"""Reads pictures and PDFs for models that read only text."""
