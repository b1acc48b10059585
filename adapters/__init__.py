"""Holds the adapters: one package for each family of backends."""
