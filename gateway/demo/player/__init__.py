"""Serves scripted responses on real sockets."""
