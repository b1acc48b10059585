"""Holds the test kit that is shipped with the gateway, for third-party adapters too. Needs pytest and hypothesis."""
