"""Turns one content block of a response into events: it opens with some content, grows by deltas and closes.

Source: Anthropic, API reference, streaming messages.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from adapters.anthropic_messages import PROVIDER
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendProtocolError
from gateway.core.events import (
    Event,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.malformed_event import invalid_event
from gateway.core.provider_state import with_provider_state

# The fields of a block whose events hold all of its content.
CONTENT_FIELDS: Final = {
    "text": frozenset({"type", "text"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
CALL_FIELDS: Final = frozenset({"type", "id", "name", "input"})
# The fields of a block that its pieces fill.
_FILLED: Final = {"text": ("text",), "thinking": ("thinking", "signature")}


class Block(Protocol):
    """An open block. `grows_by` are the types of the deltas that it takes."""

    grows_by: frozenset[str]

    def start(self) -> list[Event]:
        """Returns the events of what the block holds when it opens. Raises BackendProtocolError."""
        ...

    def grow(self, kind: str, piece: str) -> list[Event]:
        """Returns the events of a piece, of a delta of this type."""
        ...

    def stop(self) -> list[Event]:
        """Returns the events of the block's end."""
        ...


class TextBlock:
    """Text that the client reads."""

    grows_by: frozenset[str] = frozenset({"text_delta"})

    def __init__(self, index: int, opened: JsonObject) -> None:
        self._opened = opened

    def start(self) -> list[Event]:
        return self.grow("text_delta", _content_of(self._opened, "text"))

    def grow(self, kind: str, piece: str) -> list[Event]:
        return [TextDelta(piece)] if piece else []

    def stop(self) -> list[Event]:
        return []


class ThinkingBlock:
    """Reasoning, with a signature by which its provider knows it again.

    `length` is that of its text so far. `place` says where it stands behind other blocks: behind how many calls, and
    whether behind text, for a client that keeps the reasoning of an answer apart from its text. Empty: it is the first
    block, or its client keeps it at its place.
    """

    grows_by: frozenset[str] = frozenset({"thinking_delta", "signature_delta"})

    def __init__(self, index: int, opened: JsonObject) -> None:
        self.length = 0
        self.place: JsonObject = EMPTY
        self._opened = opened
        self._signature = text_of(opened, "signature")

    def start(self) -> list[Event]:
        return self.grow("thinking_delta", _content_of(self._opened, "thinking"))

    def grow(self, kind: str, piece: str) -> list[Event]:
        if kind == "signature_delta":
            self._signature = piece
            return []
        self.length += len(piece)
        return [ReasoningDelta(piece)] if piece else []

    def stop(self) -> list[Event]:
        state: dict[str, Json] = {"signature": self._signature}
        if self.place:
            state |= {"length": self.length, **self.place}
        return [ReasoningEnd(with_provider_state(PROVIDER, state))] if self._signature else []


class RedactedThinkingBlock:
    """Reasoning that only its provider can read. `place` as in ThinkingBlock."""

    grows_by: frozenset[str] = frozenset()

    def __init__(self, index: int, opened: JsonObject) -> None:
        self.place: JsonObject = EMPTY
        self._data = text_of(opened, "data")

    def start(self) -> list[Event]:
        return []

    def grow(self, kind: str, piece: str) -> list[Event]:
        return []

    def stop(self) -> list[Event]:
        return [ReasoningEnd(with_provider_state(PROVIDER, {"data": self._data, **self.place}))]


class CallBlock:
    """A call of a client's tool. Its input arrives as pieces of JSON, or whole where the response is not streamed.

    `id` is that of the call, which the reader sets; `grown` is set when a piece has arrived.
    """

    grows_by: frozenset[str] = frozenset({"input_json_delta"})

    def __init__(self, index: int, opened: JsonObject) -> None:
        self.id = ""
        self.grown = False
        self._index = index
        self._opened = opened

    @property
    def has_input(self) -> bool:
        """Whether any of the input has come."""
        return self.grown or bool(self._opened.get("input"))

    def start(self) -> list[Event]:
        name = text_of(self._opened, "name")
        if not name:
            message = "The backend sent a tool call without the name of a function."
            raise BackendProtocolError(message, code="upstream_invalid_tool_call")
        return [ToolCallStart(self._index, self.id, name)]

    def grow(self, kind: str, piece: str) -> list[Event]:
        self.grown = self.grown or bool(piece)
        return [ToolCallDelta(self._index, piece)] if piece else []

    def stop(self) -> list[Event]:
        end = ToolCallEnd(self._index)
        if self.grown:
            return [end]
        arguments = msgspec.json.encode(self._opened.get("input") or {}).decode()
        return [ToolCallDelta(self._index, arguments), end]


class OtherBlock:
    """A block without events of its own, such as a call that the backend has executed, for a client of the same API."""

    grows_by: frozenset[str] = frozenset({"input_json_delta"})

    def __init__(self, index: int, opened: JsonObject) -> None:
        self.kind = text_of(opened, "type")

    def start(self) -> list[Event]:
        return []

    def grow(self, kind: str, piece: str) -> list[Event]:
        return []

    def stop(self) -> list[Event]:
        return []


_KINDS: Final[dict[str, Callable[[int, JsonObject], Block]]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "redacted_thinking": RedactedThinkingBlock,
    "tool_use": CallBlock,
}


def open_block(index: int, opened: JsonObject) -> Block:
    """Returns the block that an object opens."""
    return _KINDS.get(text_of(opened, "type"), OtherBlock)(index, opened)


def emptied(opened: JsonObject) -> dict[str, Json]:
    """Returns the fields of a block without the text that its events hold."""
    filled = _FILLED.get(text_of(opened, "type"), ())
    return {name: "" if name in filled and isinstance(value, str) else value for name, value in opened.items()}


def text_of(fields: JsonObject, name: str) -> str:
    """Returns a field as text; empty where it is anything else."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _content_of(opened: JsonObject, name: str) -> str:
    """Returns the content that a block begins with. Raises BackendProtocolError for anything but text or null."""
    value = opened.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid_event(f"{name} of a block is not text")
    return value or ""
