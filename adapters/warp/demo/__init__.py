"""Serves a demo backend for the Warp agent wire."""
