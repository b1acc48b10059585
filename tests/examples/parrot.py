"""The Parrot's wire: one prompt goes out, server-sent events with pieces of text come back."""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from gateway.adapter import BackendRequest, Capabilities, Decoder
from gateway.core.backend_status import status_error
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated
from gateway.core.events import Event, Finish, ResponseStart, TextDelta, UsageReport
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.framing.sse import SSEDecoder
from gateway.history.transcript.render import flatten

LATE: Final = Notice("backend", "ignored", "LATE_EVENT", "the parrot sent more after its end", level="warning")
UNKNOWN: Final = Notice("backend", "ignored", "UNKNOWN_EVENT", "the parrot sent an unknown event", level="warning")


class ParrotOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The Parrot's own keys in settings.json: `voice`, how it speaks."""

    voice: str = "calm"


class Piece(msgspec.Struct, frozen=True):
    """One event: some text, or the end of the answer with the tokens it took, or an error."""

    text: str = ""
    tokens: int | None = None
    error: str | None = None


class ParrotDecoder:
    """Bytes of one answer in, events out."""

    def __init__(self, max_event: int) -> None:
        self.done = False
        self._sse = SSEDecoder(max_event)
        self._started = False

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        try:
            for payload in self._sse.feed(data):
                events += [LATE] if self.done else self._piece(payload)
            # Whole events come before an error in the same bytes.
            if self._sse.fault is not None and not self.done:
                raise self._sse.fault
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def close(self) -> list[Event]:
        if not self.done:
            raise BackendTruncated("The parrot stopped in the middle of its answer.")
        return []

    def _piece(self, payload: bytes) -> list[Event]:
        try:
            piece = msgspec.json.decode(payload.decode("utf-8", "replace"), type=Piece)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BackendProtocolError("The parrot sent an event that is not its JSON.") from error
        if piece.error is not None:
            rejected = BackendRejected("The parrot reported an error in its answer.")
            rejected.words = piece.error
            raise rejected
        if piece == Piece():
            return [UNKNOWN]
        events: list[Event] = [] if self._started else [ResponseStart()]
        self._started = True
        if piece.text:
            events.append(TextDelta(piece.text))
        if piece.tokens is not None:
            self.done = True
            events += [UsageReport(completion_tokens=piece.tokens), Finish("stop")]
        return events


class ParrotAdapter:
    """Text only: the whole conversation is one prompt."""

    Options: ClassVar[type[msgspec.Struct]] = ParrotOptions
    capabilities = Capabilities(tools=False, text_only=True, supported_params=frozenset({"temperature"}))

    def __init__(self, options: ParrotOptions, max_event: int) -> None:
        self._options = options
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        prompt = flatten(conversation, policy)
        body = {
            "prompt": prompt.text,
            "voice": self._options.voice,
            "temperature": conversation.sampling.temperature,
        }
        return BackendRequest(
            path="/speak",
            headers={"content-type": "application/json", "accept": "text/event-stream"},
            body=msgspec.json.encode(body),
            accepts=("text/event-stream",),
            notices=prompt.notices,
        )

    def decoder(self, conversation: Conversation) -> Decoder:
        return ParrotDecoder(self._max_event)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        return status_error(status, headers)

    def describe(self, body: bytes) -> Json:
        shown: Json = msgspec.json.decode(body)
        return shown
