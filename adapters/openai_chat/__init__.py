"""OpenAI's chat completions: its clients, its backends, and what both sides of this API share."""

from typing import TYPE_CHECKING, Final

from gateway.moved import moved_name

# The tag of its sources.
DIALECT: Final = "openai_chat"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved_name(__name__, name)
