"""Compares the prompts of two requests as a provider's cache does: what it cannot serve, who changed it, the cost."""
