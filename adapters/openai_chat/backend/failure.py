"""Gives the adapter the errors of OpenAI's APIs, under a name of its own package: an adapter imports no other one."""

from adapters.openai.backend_errors import decode_failure, message_of, minimax_failure, reported_failure

__all__ = ["decode_failure", "message_of", "minimax_failure", "reported_failure"]
