"""OpenAI's older completions, a prompt without messages: its clients."""

from typing import Final

# The name of the dialect in its conversations.
DIALECT: Final = "openai_completions"
