"""The ordered pipeline that every conversation goes through before it is encoded."""

import msgspec

from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation


class Prepared(msgspec.Struct, frozen=True):
    """A conversation an adapter may encode, and everything that was changed to make it so."""

    conversation: Conversation
    notices: tuple[Notice, ...]


def prepare(conversation: Conversation, policy: Policy) -> Prepared:
    """Validate, repair and trim. Raises InvalidRequest in `strict` mode."""
    return Prepared(conversation, ())
