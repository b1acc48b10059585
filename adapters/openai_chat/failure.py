"""Gives the adapter the errors of OpenAI's APIs, and the one for a chunk that breaks the wire format."""

from adapters.call_tracker import invalid_event
from adapters.openai_errors import decode_failure, message_of, reported_failure

__all__ = ["decode_failure", "invalid_event", "message_of", "reported_failure"]
