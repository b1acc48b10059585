"""Makes the answer to a client from the events of a run, streamed or whole, as the server sends it."""

from typing import Final

from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead, ClientRequest, Dialect, StreamEncoder

# What comes of no read of the backend's response, but of the beginning or the end of the answer.
NO_READ: Final = -1


class OfflineAnswer:
    """The answer to the client, streamed or whole, as the server sends it. `begun`: its status is sent. `read` is the
    read of the backend's response that is being sent on, and `reads` holds that of each write."""

    def __init__(self, dialect: Dialect, request: ClientRequest, head: AnswerHead, notices: list[Notice]) -> None:
        self._dialect = dialect
        self._request = request
        self._head = head
        self.begun = False
        self.read = NO_READ
        self.writes: list[bytes] = []
        self.reads: list[int] = []
        self._whole: list[Event] = [*notices]
        self._encoder: StreamEncoder | None = None
        if request.conversation.stream and request.generates:
            self._encoder = dialect.stream_encoder(request, head)
            self._encoder.feed(notices)

    def send(self, events: list[Event]) -> None:
        if self._encoder is None:
            self._whole += events
        else:
            self._write(self._encoder.feed(events))

    def quiet(self) -> None:
        if self._encoder is not None:
            self._write(self._encoder.quiet())

    def finish(self, events: list[Event] | tuple[()]) -> None:
        if self._encoder is None:
            self._write(self._dialect.encode_answer(self._request, self._head, [*self._whole, *events]))
        else:
            self._write(self._encoder.feed(events) + self._encoder.close())

    def fail(self, error: GatewayError) -> None:
        if self._encoder is not None:
            self._write(self._encoder.fail(error))

    def _write(self, data: bytes) -> None:
        if data:
            self.begun = True
            self.writes.append(data)
            self.reads.append(self.read)
