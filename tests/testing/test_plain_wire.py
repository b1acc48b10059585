"""Runs the kit on a wire of plain text without an end marker, and on an adapter that rejects unsupported content."""

import codecs

import pytest

from gateway.adapter import BackendRequest, Decoder
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.core.events import Event, Finish, ResponseStart, TextDelta
from gateway.core.policy import Policy
from gateway.testing import decode_checks as answering
from gateway.testing import encode_checks
from gateway.testing.conformance import Case, Check
from tests.examples.parrot import ParrotAdapter

WIRE = "Good morning, 日本.".encode()


class TextDecoder:
    """All bytes are text; the end of the bytes is the end of the answer."""

    def __init__(self) -> None:
        self.done = False
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._started = False

    def feed(self, data: bytes, final: bool = False) -> list[Event]:
        text = self._decode(data, final)
        events: list[Event] = [] if self._started else [ResponseStart()]
        self._started = True
        return [*events, TextDelta(text)] if text else events

    def close(self) -> list[Event]:
        self.done = True
        return [*self.feed(b"", final=True), Finish("stop")]


class Forgetful(TextDecoder):
    """Loses the text of every short answer."""

    def feed(self, data: bytes, final: bool = False) -> list[Event]:
        events = super().feed(data, final)
        return [TextDelta("?") if isinstance(event, TextDelta) and len(data) < 9 else event for event in events]


class PlainAdapter(ParrotAdapter):
    def decoder(self, conversation: Conversation) -> Decoder:
        return TextDecoder()


class ForgetfulAdapter(ParrotAdapter):
    def decoder(self, conversation: Conversation) -> Decoder:
        return Forgetful()


class ShyAdapter(ParrotAdapter):
    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        if len(conversation.turns) > 1:
            raise InvalidRequest("One message is all that can be said.")
        return super().encode(conversation, policy)


CASE = Case(
    "plain", PlainAdapter, WIRE, (ResponseStart(), TextDelta("Good morning, 日本."), Finish("stop")), marks_end=False
)


@pytest.mark.parametrize("check", answering.CHECKS)
def test_a_bare_text_wire_conforms(check: Check) -> None:
    check(CASE)


def test_a_cut_that_cannot_be_seen_leaves_a_beginning() -> None:
    with pytest.raises(AssertionError, match="says otherwise"):
        answering.truncation_is_noticed(Case("forgetful", ForgetfulAdapter, WIRE, marks_end=False))
    with pytest.raises(AssertionError, match="passed as complete"):
        answering.truncation_is_noticed(Case("unmarked", PlainAdapter, WIRE))


def test_a_refusal_is_no_failure() -> None:
    encode_checks.any_history_can_be_sent(Case("shy", ShyAdapter, WIRE))
