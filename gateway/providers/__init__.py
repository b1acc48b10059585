"""Describes, as data, the providers and servers of models that are known: one file each."""
