"""Provides deterministic backends with real wires on loopback, so that the gateway runs without any credential."""

from gateway.demo.player.serve import DemoBackend, serve_demo

__all__ = ["DemoBackend", "serve_demo"]
