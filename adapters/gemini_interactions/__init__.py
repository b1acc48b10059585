"""Google's Interactions, the successor of generateContent: its clients."""

from typing import Final

# The name of the dialect in its conversations.
DIALECT: Final = "gemini_interactions"
