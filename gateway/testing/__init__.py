"""The test kit that is shipped with the gateway, for adapters written elsewhere too. Needs pytest and hypothesis."""
