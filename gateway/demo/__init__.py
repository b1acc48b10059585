"""Provides deterministic backends with real wires on loopback, so that the gateway runs without any credential."""
