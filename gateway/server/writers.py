"""Events -> an answer on its way to the client: streamed as they come, or gathered into one JSON object.

The head of a stream is held until there is something to show, so that an early fault is still an HTTP status; but not
longer than the gate allows: then the stream opens with a comment, and comments go on while the backend thinks.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Protocol

from gateway.dialects.openai_chat.completion import encode_completion
from gateway.dialects.openai_chat.stream import StreamEncoder
from gateway.events import Event, Finish, ResponseStart, UsageReport
from gateway.notices import Notice
from gateway.server.call import Call, unique
from gateway.server.reply import Reply
from gateway.server.watch import ClientGone, Watch
from gateway.settings import ServerSettings
from gateway.types import Conversation

PING: Final = b": ping\n\n"
_TOLD: Final = frozenset({Notice, UsageReport, ResponseStart, Finish})


class Writer(Protocol):
    """Where the events of one answer go."""

    async def take(self, events: Sequence[Event]) -> None:
        """These have arrived; there will be more."""
        ...

    async def finish(self, events: Sequence[Event]) -> None:
        """These are the last ones."""
        ...

    async def rescue(self, events: Sequence[Event]) -> None:
        """These came before a fault in the same read: they are shown where the answer has begun to be."""
        ...


class CompletionWriter:
    """Gathers the events and answers once. Use as a context manager, like its sibling."""

    def __init__(
        self, call: Call, reply: Reply, watch: Watch, conversation: Conversation, settings: ServerSettings
    ) -> None:
        self._call = call
        self._reply = reply
        self._watch = watch
        self._write_s = settings.write_timeout_s
        self._events: list[Event] = list(call.notices)

    def __enter__(self) -> "CompletionWriter":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def take(self, events: Sequence[Event]) -> None:
        _note(self._call, events)
        self._events.extend(events)

    async def rescue(self, events: Sequence[Event]) -> None:
        pass

    async def finish(self, events: Sequence[Event]) -> None:
        _note(self._call, events)
        body = encode_completion(
            [*self._events, *events],
            id=_completion_id(),
            created=int(time.time()),
            model=self._call.model,
            diagnostics=self._call.explain,
        )
        self._watch.expect(time.monotonic() + self._write_s, ClientGone)
        self._watch.total_due = math.inf
        await self._reply.whole(200, body, self._call.answer_headers())


class StreamWriter:
    """Sends what one read of the backend brought in one piece. Use as a context manager around the exchange."""

    def __init__(
        self, call: Call, reply: Reply, watch: Watch, conversation: Conversation, settings: ServerSettings
    ) -> None:
        self._call = call
        self._reply = reply
        self._watch = watch
        self._write_s = settings.write_timeout_s
        self._keep_alive_s = settings.keep_alive_s
        self._comment: asyncio.Task[None] | None = None
        self._encoder = StreamEncoder(
            _completion_id(),
            int(time.time()),
            call.model,
            include_usage=conversation.include_usage,
            diagnostics=call.explain,
        )
        self._encoder.feed(call.notices)
        watch.on_quiet = self._break_silence
        watch.quiet_due = time.monotonic() + settings.first_event_gate_s

    def __enter__(self) -> "StreamWriter":
        self._call.stream(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._call.stream(-1)
        self._watch.on_quiet = None
        if self._comment is not None:
            self._comment.cancel()

    async def take(self, events: Sequence[Event]) -> None:
        _note(self._call, events)
        if payload := self._encoder.feed(events):
            now = time.monotonic()
            # From here the client is waited for, not the backend.
            self._watch.expect(now + self._write_s, ClientGone)
            self._watch.quiet_due = now + self._keep_alive_s
            if self._comment is not None or not self._reply.status:
                await self._open()
            await self._reply.write(payload)

    async def finish(self, events: Sequence[Event]) -> None:
        _note(self._call, events)
        payload = self._encoder.feed(events) + self._encoder.close()
        self._watch.on_quiet = None
        self._watch.total_due = math.inf
        self._watch.expect(time.monotonic() + self._write_s, ClientGone)
        await self._open()
        await self._reply.end(payload)

    async def rescue(self, events: Sequence[Event]) -> None:
        if events and self._reply.status:
            await self.take(events)

    async def _open(self) -> None:
        if self._comment is not None:
            await self._comment
            self._comment = None
        if not self._reply.status:
            await self._reply.open(self._call.answer_headers())

    def _break_silence(self) -> None:
        """A comment, from a task of its own: the request's task is waiting for the backend."""
        self._watch.quiet_due = time.monotonic() + self._keep_alive_s
        if self._comment is None or self._comment.done():
            self._comment = asyncio.create_task(self._send_comment())

    async def _send_comment(self) -> None:
        if not self._reply.status:
            await self._reply.open(self._call.answer_headers())
        await self._reply.write(PING)


def _note(call: Call, events: Sequence[Event]) -> None:
    if _TOLD.isdisjoint(map(type, events)):
        return
    for event in events:
        if type(event) is Notice:
            call.note((event,))
        elif type(event) is UsageReport:
            call.use(event)
        if call.trace is not None:
            call.trace.tell(event)


def _completion_id() -> str:
    return f"chatcmpl-{unique()}"
