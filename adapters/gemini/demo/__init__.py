"""Serves a demo backend for Google's generateContent."""
