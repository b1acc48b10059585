"""Derives the prefix of a response's call ids from its conversation; equal only for equal conversations."""

import hashlib

from gateway.core.conversation import Conversation


def id_prefix(conversation: Conversation) -> str:
    """Returns `call_`, sixteen digits and `_`: no other turn of a growing conversation gets the same prefix."""
    digest = hashlib.blake2s(digest_size=8)
    for turn in conversation.turns:
        answers = [result.call_id for result in turn.results]
        written = repr(
            (turn.role, turn.text, [call.id for call in turn.calls], answers, [r.text for r in turn.results])
        )
        digest.update(written.encode("utf-8", "surrogatepass"))
    return f"call_{digest.hexdigest()}_"
