"""Tests of the documentation as it was built (`make docs`)."""
