"""Tests of the routes that are passed on as they are."""
