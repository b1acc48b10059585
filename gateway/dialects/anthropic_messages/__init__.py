"""The dialect of Anthropic's Messages API: converts between its JSON and conversations, events and errors."""

from typing import Final

DIALECT: Final = "anthropic_messages"
# The name below which this API keeps its own state of reasoning: signatures and redacted thinking.
PROVIDER: Final = "anthropic"
# The name that the header with the client's betas has as a field of the request's source.
BETA_FIELD: Final = "anthropic_beta"
