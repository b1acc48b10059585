"""Holds a gateway to its promises under load: `make load`, described in docs/performance.md."""
