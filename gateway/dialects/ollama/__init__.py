"""The Ollama dialect: decodes chat and generate requests, and encodes events as lines of JSON or as one JSON object."""

from typing import Final

# The name of the dialect in its conversations.
DIALECT: Final = "ollama"
