"""The demo backend for the Warp agent wire."""
