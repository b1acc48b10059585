"""The deterministic model behind every demo backend."""
