"""The dialect of OpenAI's older completions: a prompt, answered as SSE or as one JSON response."""

from typing import Final

# The name of the dialect in its conversations.
DIALECT: Final = "openai_completions"
