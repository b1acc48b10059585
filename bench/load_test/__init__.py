"""Checks a gateway's promises under load: `make load`, described in docs/performance.md."""
