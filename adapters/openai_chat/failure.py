"""Sets up the errors of OpenAI's APIs for the adapter."""

from adapters.openai_errors import decode_failure, message_of, reported_failure

__all__ = ["decode_failure", "message_of", "reported_failure"]
