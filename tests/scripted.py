"""An adapter whose backend is a script: each byte of the answer stands for the next list of events."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from gateway.adapter import BackendRequest, Capabilities, Decoder
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import BackendError, BackendRejected, BackendTruncated
from gateway.core.events import Event, Finish
from gateway.core.notices import Notice
from gateway.core.policy import Policy

ENCODED = Notice("encode", "changed", "TOOL_SCHEMA_CHANGED", "the request was scripted")


class ScriptedOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It has none."""


class ScriptedDecoder:
    """Plays the script; `done` as soon as it has played a Finish."""

    def __init__(self, script: Sequence[list[Event] | BackendError]) -> None:
        self._script = list(script)
        self.done = False

    def feed(self, data: bytes) -> list[Event]:
        played: list[Event] = []
        for _ in data:
            entry = self._script.pop(0)
            if isinstance(entry, BackendError):
                raise entry
            played += entry
            self.done = self.done or any(isinstance(event, Finish) for event in entry)
        return played

    def close(self) -> list[Event]:
        if not self.done:
            raise BackendTruncated("The script was not played to its end.")
        return []


NO_CAPABILITIES = Capabilities()


class ScriptedAdapter:
    """Encodes every conversation to the same request."""

    Options: ClassVar[type[msgspec.Struct]] = ScriptedOptions

    def __init__(self, *script: list[Event] | BackendError, capabilities: Capabilities = NO_CAPABILITIES) -> None:
        self.capabilities = capabilities
        self._script = script
        self.encoded: list[Conversation] = []

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        self.encoded.append(conversation)
        return BackendRequest("/play", {}, b"script", ("text/plain",), (ENCODED,))

    def decoder(self, conversation: Conversation) -> Decoder:
        return ScriptedDecoder(self._script)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        return BackendRejected(body.decode(), status=status, headers=headers)

    def describe(self, body: bytes) -> Json:
        return body.decode()
