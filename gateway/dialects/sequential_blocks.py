"""Orders the events of an answer into blocks that follow one another: text, reasoning, calls.

The events of an answer interleave as the backend sends them. Some clients read one block at a time: it opens, grows and
closes before the next one opens. `SequentialBlocks` holds back whatever belongs to a later block.
"""

from collections import deque
from collections.abc import Iterator
from itertools import groupby
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from gateway.core.conversation import EMPTY, JsonObject
from gateway.core.events import (
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

BlockKind: TypeAlias = Literal["text", "reasoning", "call", "other"]
# Of these no event of the core says where they end.
WITHOUT_END: Final = frozenset({"text", "other"})


class OwnBlock(msgspec.Struct, frozen=True):
    """A block of a backend of the client's dialect begins, also directly behind another of its kind. `fields` are what
    the backend says of it."""

    kind: BlockKind
    fields: JsonObject


class OwnPiece(msgspec.Struct, frozen=True):
    """A piece of the present block of a backend of the client's dialect, as the backend wrote it; `call` is the index
    of the call that it belongs to, None for one of another block."""

    fields: JsonObject
    call: int | None = None


class OwnEnd(msgspec.Struct, frozen=True):
    """The present text, or block of the kind `other`, of a backend of the client's dialect ends."""


BlockEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ReasoningEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | PassthroughFields
    | OwnBlock
    | OwnPiece
    | OwnEnd
)


class BlockStart(msgspec.Struct, frozen=True):
    """A block opens. `number` counts the blocks of the answer from 0; `call` is the start of a call.

    `fields` are those of a text, the state of a piece of reasoning without text, or the fields of a block of the kind
    `other`.
    """

    number: int
    kind: BlockKind
    call: ToolCallStart | None = None
    fields: JsonObject = EMPTY


class BlockDelta(msgspec.Struct, frozen=True):
    """A non-empty piece of the open block: of its text, or of the arguments of its call."""

    text: str


class BlockFields(msgspec.Struct, frozen=True):
    """Fields of the open block, behind its pieces so far."""

    fields: JsonObject


class BlockEnd(msgspec.Struct, frozen=True):
    """The open block closes. `state` is that of a piece of reasoning, or the fields that only the end of a call has."""

    state: JsonObject = EMPTY


BlockStep: TypeAlias = BlockStart | BlockDelta | BlockFields | BlockEnd


class SequentialBlocks:
    """Orders the events of one answer.

    - `feed` takes an event and returns the steps that follow from it: none while it is held back.
    - `close` returns the last steps of a complete answer.
    - `kind` is that of the open block, None while none is open; `call` is the index of the open call. A delta of the
      open block (`TextDelta` while `kind` is "text", `ToolCallDelta` of the index `call`) changes nothing here: an
      encoder may write it without a call of `feed`.

    Text and reasoning close when something else begins, reasoning also at its `ReasoningEnd`; a call closes at its
    `ToolCallEnd`. While a call is open, everything else is held back, and then follows in the order in which it began.
    A `ReasoningEnd` behind no reasoning is a block without text if it has state, else nothing: an encoder leaves out
    the state that its client does not get. `PassthroughFields` are a complete block of the kind `other`; one that
    begins with `OwnBlock` closes at its `OwnEnd`. What is still held back when an answer fails is lost with the rest of
    the answer.
    """

    def __init__(self) -> None:
        self.kind: BlockKind | None = None
        self.call: int | None = None
        self._opened = 0
        self._held: deque[_HeldBlock] = deque()
        self._held_calls: dict[int, _HeldBlock] = {}

    def feed(self, event: BlockEvent) -> list[BlockStep]:
        """Returns the steps that follow from an event. The events obey `gateway.core.grammar`."""
        if self.call is not None and not _of_call(event, self.call):
            self._hold(event)
            return []
        steps: list[BlockStep] = []
        match event:
            case TextDelta():
                self._grow("text", event.text, steps)
            case ReasoningDelta():
                self._grow("reasoning", event.text, steps)
            case ReasoningEnd():
                self._end_reasoning(event.extra, steps)
            case ToolCallStart():
                self._open(_HeldBlock("call", event), steps)
            case ToolCallDelta():
                steps.append(BlockDelta(event.arguments))
            case ToolCallEnd():
                self._close(steps, event.extra)
                self._release(steps)
            case PassthroughFields():
                self._open(_HeldBlock("other", fields=event.fields), steps)
                self._close(steps)
            case OwnBlock() | OwnPiece() | OwnEnd():
                self._own(event, steps)
            case _:
                assert_never(event)
        return steps

    def close(self) -> list[BlockStep]:
        """Returns the steps at the end of a complete answer, whose calls have all ended."""
        steps: list[BlockStep] = []
        self._close(steps)
        return steps

    def _own(self, event: OwnBlock | OwnPiece | OwnEnd, steps: list[BlockStep]) -> None:
        if isinstance(event, OwnBlock):
            self._open(_HeldBlock(event.kind, fields=event.fields), steps)
        elif isinstance(event, OwnPiece):
            steps += [BlockFields(event.fields)] if self.kind is not None else ()
        elif self.kind in WITHOUT_END:
            self._close(steps)

    def _hold_own(self, event: OwnBlock | OwnPiece | OwnEnd) -> None:
        last = self._held[-1] if self._held else None
        if isinstance(event, OwnBlock):
            self._held.append(_HeldBlock(event.kind, fields=event.fields))
        elif last is not None and isinstance(event, OwnPiece):
            last.pieces.append(event.fields)
        elif last is not None:
            last.ended = last.ended or last.kind in WITHOUT_END

    def _grow(self, kind: BlockKind, text: str, steps: list[BlockStep]) -> None:
        if self.kind != kind:
            self._open(_HeldBlock(kind), steps)
        steps.append(BlockDelta(text))

    def _end_reasoning(self, state: JsonObject, steps: list[BlockStep]) -> None:
        if self.kind != "reasoning":
            if not state:
                return
            self._open(_HeldBlock("reasoning", fields=state), steps)
        self._close(steps, state)

    def _open(self, block: "_HeldBlock", steps: list[BlockStep]) -> None:
        """Opens a block; the open one closes before."""
        self._close(steps)
        steps.append(BlockStart(self._opened, block.kind, block.call, block.fields))
        self._opened += 1
        self.kind = block.kind
        self.call = None if block.call is None else block.call.index

    def _close(self, steps: list[BlockStep], state: JsonObject = EMPTY) -> None:
        if self.kind is not None:
            steps.append(BlockEnd(state))
            self.kind = self.call = None

    def _hold(self, event: BlockEvent) -> None:
        match event:
            case TextDelta():
                self._held_open("text").pieces.append(event.text)
            case ReasoningDelta():
                self._held_open("reasoning").pieces.append(event.text)
            case ReasoningEnd():
                self._hold_reasoning_end(event.extra)
            case ToolCallStart():
                block = self._held_calls[event.index] = _HeldBlock("call", event)
                self._held.append(block)
            case ToolCallDelta():
                self._held_calls[event.index].pieces.append(event.arguments)
            case ToolCallEnd():
                block = self._held_calls.pop(event.index)
                block.state, block.ended = event.extra, True
            case PassthroughFields():
                self._held.append(_HeldBlock("other", fields=event.fields, ended=True))
            case OwnBlock() | OwnPiece() | OwnEnd():
                self._hold_own(event)
            case _:
                assert_never(event)

    def _held_open(self, kind: BlockKind) -> "_HeldBlock":
        """Returns the last block that is held back if its next piece may be of this kind, else a new one."""
        if not self._held or self._held[-1].kind != kind or self._held[-1].ended:
            self._held.append(_HeldBlock(kind))
        return self._held[-1]

    def _hold_reasoning_end(self, state: JsonObject) -> None:
        last = self._held[-1] if self._held else None
        if last is not None and last.kind == "reasoning" and not last.ended:
            last.state, last.ended = state, True
        elif state:
            self._held.append(_HeldBlock("reasoning", fields=state, state=state, ended=True))

    def _release(self, steps: list[BlockStep]) -> None:
        """Writes the blocks that were held back, up to the first that must stay open."""
        while self._held:
            block = self._held.popleft()
            self._open(block, steps)
            steps += block.steps()
            if block.ended:
                self._close(steps, block.state)
            elif block.call is not None:
                del self._held_calls[block.call.index]
                return


class _HeldBlock(msgspec.Struct):
    """A block that has not opened yet, with its pieces so far, and what is said of it between them."""

    kind: BlockKind
    call: ToolCallStart | None = None
    fields: JsonObject = EMPTY
    pieces: list[str | JsonObject] = []
    ended: bool = False
    state: JsonObject = EMPTY

    def steps(self) -> Iterator[BlockStep]:
        """Yields the pieces between the beginning and the end of the block, with neighbouring texts as one."""
        for is_text, run in groupby(self.pieces, lambda piece: isinstance(piece, str)):
            if is_text:
                yield BlockDelta("".join([piece for piece in run if isinstance(piece, str)]))
            else:
                yield from [BlockFields(piece) for piece in run if not isinstance(piece, str)]


def _of_call(event: BlockEvent, index: int) -> bool:
    if type(event) is OwnPiece:
        return event.call == index
    return (type(event) is ToolCallDelta or type(event) is ToolCallEnd) and event.index == index
