"""Asks another worker about its requests."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.inspector.requests import Change, Listed, RequestContents
from gateway.inspector.summary import Summary
from gateway.inspector.totals import Totals
from gateway.server.inspect.workers.frames import (
    READ,
    Clear,
    Fetch,
    Fetched,
    List,
    Previous,
    Question,
    Reply,
    Summarize,
    Total,
    Watch,
    contents_of,
    read_frame,
    write_frame,
)

# A worker that does not read a question so soon, or works longer for its answer, counts as gone.
_READ_S: Final = 2
_MOST_S: Final = 30
T = TypeVar("T")
_REPLY: Final = msgspec.msgpack.Decoder(Reply)
_LISTED: Final = msgspec.msgpack.Decoder(Listed)
_TOTALS: Final = msgspec.msgpack.Decoder(Totals)
_SUMMARY: Final[msgspec.msgpack.Decoder[Summary | None]] = msgspec.msgpack.Decoder(Summary | None)
_FETCHED: Final[msgspec.msgpack.Decoder[Fetched | None]] = msgspec.msgpack.Decoder(Fetched | None)
_NOTHING: Final[msgspec.msgpack.Decoder[None]] = msgspec.msgpack.Decoder(None)
_CHANGES: Final[msgspec.msgpack.Decoder[Sequence[Change]]] = msgspec.msgpack.Decoder(Sequence[Change])


class PeerGone(Exception):
    """The other worker does not answer: it has ended, hangs, or its successor has not begun."""


class Peer:
    """Another worker, by its socket: a `RequestSource` whose methods raise PeerGone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def is_there(self) -> bool:
        """Returns whether the worker answers."""
        try:
            await self.listed("", None, 0)
        except PeerGone:
            return False
        return True

    async def listed(self, filter: str, before: int | None, limit: int) -> Listed:
        return await self._ask(List(filter, before, limit), _LISTED)

    async def totals(self, filter: str) -> Totals:
        return await self._ask(Total(filter), _TOTALS)

    async def summary(self, request_id: str) -> Summary | None:
        return await self._ask(Summarize(request_id), _SUMMARY)

    async def contents(self, request_id: str) -> RequestContents | None:
        found = await self._ask(Fetch(request_id), _FETCHED)
        return None if found is None else await asyncio.to_thread(contents_of, found)

    async def previous(self, conversation: str, before: int) -> Summary | None:
        return await self._ask(Previous(conversation, before), _SUMMARY)

    async def clear(self) -> None:
        await self._ask(Clear(), _NOTHING)

    async def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        async with self._asked(Watch(after)) as reader:
            while True:
                try:
                    changes = await read_frame(reader, _CHANGES)
                except (OSError, EOFError, msgspec.MsgspecError) as error:
                    raise PeerGone(str(self.path)) from error
                yield changes

    async def _ask(self, question: Question, decoder: msgspec.msgpack.Decoder[T]) -> T:
        """Returns the answer. Raises InvalidRequest where the worker refuses, and PeerGone."""
        try:
            async with asyncio.timeout(_MOST_S), self._asked(question) as reader:
                reply = await read_frame(reader, _REPLY)
                if reply.refused is None:
                    return decoder.decode(reply.found)
        except (OSError, EOFError, TimeoutError, msgspec.MsgspecError) as error:
            raise PeerGone(str(self.path)) from error
        refused = reply.refused
        raise InvalidRequest(refused.message, status=refused.status, code=refused.code, param=refused.param)

    @asynccontextmanager
    async def _asked(self, question: Question) -> AsyncIterator[asyncio.StreamReader]:
        """Sends a question, which the worker reads. Raises PeerGone."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_READ_S):
                    reader, writer = await asyncio.open_unix_connection(self.path)
                    stack.callback(writer.close)
                    write_frame(writer, question)
                    await reader.readexactly(len(READ))
            except (OSError, EOFError, TimeoutError) as error:
                raise PeerGone(str(self.path)) from error
            yield reader
