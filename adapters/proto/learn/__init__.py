"""Proposes the mapping of a protobuf service from its schema and recorded exchanges, and says what it could not decide.

The values of a template's names are known for each recorded request, so that a template is found by looking for them in
the fields of the recorded messages. Every part of it is rendered for each exchange before it is proposed. The rules are
found in the same way, from the answers that clients got.
"""

from adapters.proto.learn.bodies import GRPC, fitting_methods, methods_of, with_failures, write_request, write_response
from adapters.proto.learn.by_name import GuessedRequest, guess_request, guessed_body, request_headers
from adapters.proto.learn.exchange import KnownAnswer, KnownError, RecordedExchange
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.proposal import Proposal, propose, propose_rules

__all__ = [
    "GRPC",
    "Doubt",
    "GuessedRequest",
    "KnownAnswer",
    "KnownError",
    "Proposal",
    "RecordedExchange",
    "fitting_methods",
    "guess_request",
    "guessed_body",
    "methods_of",
    "propose",
    "propose_rules",
    "request_headers",
    "with_failures",
    "write_request",
    "write_response",
]
