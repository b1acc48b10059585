"""The OpenAI Responses dialect: decodes requests, and encodes events as SSE or as one JSON response."""

from typing import Final

# The tag of its sources.
DIALECT: Final = "openai_responses"
# The maker of its opaque state (`gateway.core.provider_state`).
PROVIDER: Final = "openai"
