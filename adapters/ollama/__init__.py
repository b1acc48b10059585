"""Ollama's chat and generate: its clients."""

from typing import Final

# The name of the dialect in its conversations.
DIALECT: Final = "ollama"
