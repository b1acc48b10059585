"""Measures gateways on this machine, all in the same way: `make bench`, described in docs/performance.md."""
