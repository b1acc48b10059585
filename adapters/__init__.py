"""The adapters: one package for each family of backends."""
