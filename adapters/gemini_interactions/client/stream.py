"""Encodes events as the events of the API: an interaction whose steps begin, grow and stop one after another.

Most of the bytes of a piece are constant: only its text is encoded.

The states (`gateway.dialects.stream_state`): the events of the interaction's beginning are written before the first
step; behind `finish` only token counts and notices may follow, and `end` writes the last event.
"""

from collections.abc import Iterable
from typing import ClassVar, Final, assert_never

import msgspec

from adapters.gemini_interactions.client.errors import failure
from adapters.gemini_interactions.client.interaction import GrowingInteraction
from adapters.gemini_interactions.client.own_steps import CALL, MODEL, THOUGHT, Step
from adapters.gemini_interactions.client.steps import call_step, signature, thought_step
from adapters.gemini_interactions.client.stored import CHAIN
from adapters.gemini_interactions.table import PREVIOUS
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import GatewayError
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead, ClientRequest
from gateway.dialects.event_stream import EVENT_STREAM_HEADERS, PING, one_line_each
from gateway.dialects.sequential_blocks import (
    BlockDelta,
    BlockEnd,
    BlockEvent,
    BlockFields,
    BlockStart,
    BlockStep,
    SequentialBlocks,
)
from gateway.dialects.stateful import AnswerRecord
from gateway.dialects.stored_chain import StoredInput
from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamInput, StreamState

_encode = msgspec.json.Encoder().encode
_DELTA: Final = b'event: step.delta\ndata: {"index":%d,"delta":{"type":'
_END: Final = b'},"event_type":"step.delta"}\n\n'
# What stands before and behind the text of a piece, by the type of its step.
_PIECES: Final = {
    MODEL: (_DELTA + b'"text","text":', _END),
    THOUGHT: (_DELTA + b'"thought_summary","content":{"type":"text","text":', b"}" + _END),
    CALL: (_DELTA + b'"arguments_delta","arguments":', _END),
}
_DONE: Final = b"event: done\ndata: [DONE]\n\n"


class InteractionStreamEncoder:
    """Encodes one answer.

    `feed` returns the bytes to send now, `close` the last ones; `fail` ends the stream instead, and `quiet` keeps it
    alive. `whole` is the object for a client that does not stream, `record` what is stored; they need the steps, which
    the encoder `keeps` for them alone: a stream has sent them.
    """

    headers: ClassVar = EVENT_STREAM_HEADERS

    def __init__(self, request: ClientRequest, head: AnswerHead, *, keeps: bool) -> None:
        self._head = head
        self._to_store = request.to_store
        self._keeps = keeps
        self._interaction = GrowingInteraction(head, request.echo.get(PREVIOUS))
        self._state = StreamState.NEW
        self._blocks = SequentialBlocks()
        self._steps = 0
        # The open step: its type, its call, the pieces of its text, and the bytes around one.
        self._kind: str | None = None
        self._call: ToolCallStart | None = None
        self._pieces: list[str] = []
        self._before = self._behind = b""

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the bytes of these events; they may be sent in one piece."""
        out: list[bytes] = []
        blocks = self._blocks
        for event in events:
            # Nearly every event is a further piece of the open step.
            if type(event) is TextDelta and blocks.kind == "text":
                piece = event.text
            elif type(event) is ToolCallDelta and blocks.call == event.index:
                piece = event.arguments
            elif type(event) is ReasoningDelta and blocks.kind == "reasoning":
                piece = event.text
            else:
                self._event(event, out)
                continue
            if self._keeps:
                self._pieces.append(piece)
            out += (self._before, _encode(piece), self._behind)
        return one_line_each(b"".join(out))

    def close(self) -> bytes:
        """Returns the last events. Returns nothing after an error."""
        if self._state is StreamState.ENDED:
            return b""
        out: list[bytes] = []
        self._open(out)
        self._write(out, "interaction.completed", {"interaction": self._interaction.ended})
        out.append(_DONE)
        self._step("end")
        return one_line_each(b"".join(out))

    def quiet(self) -> bytes:
        """Returns a comment, which clients ignore."""
        return PING

    def fail(self, error: GatewayError) -> bytes:
        """Returns the error. Neither the event of a complete interaction nor the mark of a complete stream follows."""
        if self._state is StreamState.ENDED:
            return b""
        out: list[bytes] = []
        self._open(out)
        self._write(out, "error", {"error": failure(error)})
        self._step("end")
        return one_line_each(b"".join(out))

    def whole(self) -> bytes:
        """Returns the interaction as JSON, for a client that does not stream."""
        return _encode(self._interaction.complete())

    def record(self, renew_s: float | None) -> AnswerRecord:
        """Returns what is stored of the complete answer (`StoringEncoder.record`)."""
        assert isinstance(self._to_store, StoredInput)  # as the decoder made it for an answer to be stored
        made = self._interaction.complete()
        return CHAIN.record(self._interaction.id, self._to_store, made, (), self._head.created, renew_s)

    def deny(self, notice: Notice) -> None:
        """Makes the rest of the answer say that it is not stored."""
        self._interaction.deny(notice)

    def _event(self, event: Event, out: list[bytes]) -> None:
        if type(event) is Finish:
            self._finish(event, out)
        elif type(event) is UsageReport:
            self._interaction.add_usage(event)
        elif type(event) is Notice:
            self._interaction.notices.append(event)
        elif type(event) is not ResponseStart and type(event) is not PassthroughFields:
            # No backend speaks this API: nobody has fields that only its clients know.
            self._feed_blocks(event, out)

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        self._open(out)
        for step in self._blocks.close():
            self._block_step(step, out)
        self._interaction.finish(event.reason)
        self._step("finish")

    def _feed_blocks(self, event: BlockEvent, out: list[bytes]) -> None:
        for step in self._blocks.feed(event):
            self._block_step(step, out)

    def _block_step(self, step: BlockStep, out: list[bytes]) -> None:
        match step:
            case BlockStart():
                self._start(step, out)
            case BlockDelta():
                if self._keeps:
                    self._pieces.append(step.text)
                out += (self._before, _encode(step.text), self._behind)
            case BlockEnd():
                self._stop(step.state, out)
            case BlockFields():
                pass
            case _:
                assert_never(step)

    def _start(self, block: BlockStart, out: list[bytes]) -> None:
        """Begins a step, unless it is reasoning of which the client may read nothing, not even its state."""
        if block.kind == "reasoning" and block.fields and not signature(block.fields):
            return
        self._open(out)
        self._call, self._pieces = block.call, []
        self._kind = CALL if block.call is not None else THOUGHT if block.kind == "reasoning" else MODEL
        begun: Step = {"type": self._kind}
        if block.call is not None:
            begun = call_step(block.call.id, block.call.name, "", block.call.extra)
        self._write(out, "step.start", {"index": self._steps, "step": begun})
        before, self._behind = _PIECES[self._kind]
        self._before = before % self._steps

    def _stop(self, state: JsonObject, out: list[bytes]) -> None:
        """Ends the open step, if there is one."""
        if self._kind is None:
            return
        said = signature(state)
        if said:
            delta = {"type": "thought_signature", **said}
            self._write(out, "step.delta", {"index": self._steps, "delta": delta})
        self._write(out, "step.stop", {"index": self._steps})
        if self._keeps:
            self._interaction.steps.append(self._made("".join(self._pieces), state if said else EMPTY))
        self._steps += 1
        self._kind = None

    def _made(self, text: str, state: JsonObject) -> Step:
        """Returns the open step, complete."""
        if self._call is not None:
            return call_step(self._call.id, self._call.name, text, state or self._call.extra)
        if self._kind == THOUGHT:
            return thought_step(text, state)
        return {"type": MODEL, "content": [{"type": "text", "text": text}]}

    def _open(self, out: list[bytes]) -> None:
        """Writes the first two events, unless they are written."""
        if self._state is StreamState.NEW:
            self._step("write")
            self._write(out, "interaction.created", {"interaction": self._interaction.begun})
            fields: dict[str, Json] = {"interaction_id": self._interaction.id, "status": "in_progress"}
            self._write(out, "interaction.status_update", fields)

    def _write(self, out: list[bytes], kind: str, fields: JsonObject) -> None:
        out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode({**fields, "event_type": kind})))

    def _step(self, move: StreamInput) -> None:
        self._state = STREAM_TRANSITIONS[self._state][move]
