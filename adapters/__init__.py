"""Holds the wires: one package for each API, with its clients, its backends and what both sides share."""

from gateway.moved import install

# Who still imports a module by its old path finds it.
install()
