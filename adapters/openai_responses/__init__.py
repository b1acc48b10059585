"""OpenAI's Responses: its clients, its backends, and what both sides of this API share."""

from typing import TYPE_CHECKING, Final

from gateway.moved import moved_name

# The tag of its sources.
DIALECT: Final = "openai_responses"
# The maker of its opaque state (`gateway.core.provider_state`).
PROVIDER: Final = "openai"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved_name(__name__, name)
