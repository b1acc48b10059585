"""The smallest adapter: a made-up wire of SSE events, so that the server is tested apart from every real backend.

`data: text WORDS`, `data: call NAME ARGUMENTS`, `data: usage PROMPT COMPLETION`, `data: finish`,
`data: error SENTENCE`, `data: vanish` (done, but not finished); anything else is malformed.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from gateway.adapter import BackendRequest, Capabilities
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated
from gateway.core.events import (
    Event,
    Finish,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.framing.sse import SSEDecoder


class PlainOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`path` is where the conversation is posted."""

    path: str = "/talk"


class PlainAdapter:
    """Sends the turns' texts, one a line."""

    Options: ClassVar[type[msgspec.Struct]] = PlainOptions
    capabilities = Capabilities(supported_params=frozenset({"temperature"}))

    def __init__(self, options: PlainOptions, max_event: int) -> None:
        self._path = options.path
        self._max_event = max_event

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        notices: tuple[Notice, ...] = ()
        if conversation.tools:
            notices = (Notice("encode", "dropped", "TOOLS_NOT_OFFERED", "left the tools out", level="info"),)
        body = "\n".join([conversation.model, *(turn.text for turn in conversation.turns)]).encode()
        return BackendRequest(self._path, {"accept": "text/event-stream"}, body, ("text/event-stream",), notices)

    def decoder(self, conversation: Conversation) -> "PlainDecoder":
        return PlainDecoder(self._max_event)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        return BackendRejected(f"status {status}: {body.decode(errors='replace')[:100]}", status=status)

    def describe(self, body: bytes) -> Json:
        return body.decode()


class PlainDecoder:
    def __init__(self, max_event: int) -> None:
        self._sse = SSEDecoder(max_event)
        self._begun = False
        self._calls = 0
        self.done = False

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        try:
            for data_field in self._sse.feed(data):
                if not self._begun:
                    self._begun = True
                    events.append(ResponseStart())
                events += self._event(data_field.decode())
        except BackendError as error:
            error.keep(events)
            raise
        return events

    def close(self) -> list[Event]:
        raise BackendTruncated("The backend's response ended before it was complete.")

    def _event(self, text: str) -> list[Event]:
        word, _, rest = text.partition(" ")
        match word:
            case "start":
                return []
            case "text":
                return [TextDelta(rest)]
            case "call":
                name, _, arguments = rest.partition(" ")
                self._calls += 1
                return [
                    ToolCallStart(self._calls, f"call_{self._calls}", name),
                    ToolCallDelta(self._calls, arguments),
                    ToolCallEnd(self._calls),
                ]
            case "notice":
                return [Notice("backend", "changed", "TEXT_MENDED", rest)]
            case "usage":
                prompt, completion = rest.split()
                return [UsageReport(int(prompt), int(completion))]
            case "finish":
                self.done = True
                return [Finish("stop")]
            case "vanish":
                self.done = True
                return []
            case "error":
                raise BackendRejected(rest)
            case "bug":
                raise ZeroDivisionError(rest)
            case _:
                raise BackendProtocolError("The backend sent a malformed event.")
