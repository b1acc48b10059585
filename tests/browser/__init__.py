"""Tests of the inspector's page in a real browser. `make browser` installs what they need and runs them."""
