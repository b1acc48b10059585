"""Answers the other workers about the requests of this one."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.inspector.requests import RequestSource
from gateway.server.inspect.workers.frames import (
    READ,
    Clear,
    Fetch,
    List,
    Previous,
    Question,
    Refused,
    Reply,
    Summarize,
    Total,
    Watch,
    fetched,
    read_frame,
    write_frame,
)
from gateway.server.log.logger import LOGGER

_QUESTIONS: Final[msgspec.msgpack.Decoder[Question]] = msgspec.msgpack.Decoder(Question)


@asynccontextmanager
async def serving_requests(own: RequestSource, path: Path) -> AsyncIterator[None]:
    """Serves the requests of this worker on a socket that only its user can reach, until the block ends. Where that is
    not possible, the log says so, and the other workers do not see them."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await _answer(own, reader, writer)
        finally:
            connections.discard(task)
            writer.close()

    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # that of a worker with the same number, which has ended
    try:
        server = await asyncio.start_unix_server(connected, path)
    except OSError as error:
        LOGGER.warning("the inspector shows other workers nothing of this one: %s", error.strerror or error)
        yield
        return
    try:
        yield
    finally:
        server.close()
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)


async def _answer(own: RequestSource, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers one question."""
    with contextlib.suppress(EOFError, ConnectionError):
        question = await read_frame(reader, _QUESTIONS)
        writer.write(READ)
        if isinstance(question, Watch):
            await _watch(own, question, reader, writer)
            return
        try:
            reply = Reply(msgspec.Raw(msgspec.msgpack.encode(await _found(own, question))))
        except InvalidRequest as error:
            reply = Reply(refused=Refused(error.message, error.status, error.code, error.param))
        write_frame(writer, reply)
        await writer.drain()


async def _found(own: RequestSource, question: List | Total | Summarize | Fetch | Previous | Clear) -> object:
    match question:
        case List():
            return await own.listed(question.filter, question.before, question.limit)
        case Total():
            return await own.totals(question.filter)
        case Summarize():
            return await own.summary(question.id)
        case Fetch():
            contents = await own.contents(question.id)
            return None if contents is None else await asyncio.to_thread(fetched, contents)
        case Previous():
            return await own.previous(question.conversation, question.before)
        case Clear():
            await own.clear()
            return None


async def _watch(
    own: RequestSource, question: Watch, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Sends the changes until the other worker closes, which says nothing else."""
    sending = asyncio.create_task(_send_changes(own, question, writer))
    closed = asyncio.create_task(reader.read())
    try:
        await asyncio.wait((sending, closed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        sending.cancel()
        closed.cancel()
        await asyncio.wait((sending, closed))


async def _send_changes(own: RequestSource, question: Watch, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        async for changes in own.watch(question.after):
            write_frame(writer, changes)
            await writer.drain()
