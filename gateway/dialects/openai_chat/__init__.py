"""The OpenAI chat completions dialect: decodes requests, and encodes events as SSE or as one JSON response."""

from typing import Final

# The tag of its sources.
DIALECT: Final = "openai_chat"
