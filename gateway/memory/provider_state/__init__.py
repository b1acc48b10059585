"""Finds the opaque state of complete answers, and puts it back into the history of a client that dropped it.

Sans-IO: which state is stored, where it belongs and whether it still fits; the server stores it.
"""
