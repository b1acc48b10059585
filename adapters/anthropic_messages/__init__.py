"""Anthropic's Messages: its clients, its backends, and what both sides of this API share."""

from typing import TYPE_CHECKING, Final

from gateway.moved import moved_name

DIALECT: Final = "anthropic_messages"
# The name below which this API keeps its own state of reasoning: signatures and redacted thinking.
PROVIDER: Final = "anthropic"
# The name that the header with the client's betas has as a field of the request's source.
BETA_FIELD: Final = "anthropic_beta"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved_name(__name__, name)
