"""Defines what workers ask each other, and writes it in frames: the length in four bytes, and MessagePack.

The worker that is asked says at once that it has read the question: one that is busy with it is not taken for one that
hangs.
"""

import asyncio
from typing import Final, TypeAlias, TypeVar

import msgspec

from gateway.inspector.requests import RequestContents
from gateway.recording.recording import Recording, read_recording, write_recording

_LENGTH: Final = 4
# Says that a question was read.
READ: Final = b"\0"
T = TypeVar("T")


class List(msgspec.Struct, frozen=True, tag=True):
    """Asks for `RequestSource.listed`."""

    filter: str
    before: int | None
    limit: int


class Total(msgspec.Struct, frozen=True, tag=True):
    """Asks for `RequestSource.totals`."""

    filter: str


class Summarize(msgspec.Struct, frozen=True, tag=True):
    """Asks for `RequestSource.summary`."""

    id: str


class Fetch(msgspec.Struct, frozen=True, tag=True):
    """Asks for `RequestSource.contents`."""

    id: str


class Previous(msgspec.Struct, frozen=True, tag=True):
    """Asks for `RequestSource.previous`."""

    conversation: str
    before: int


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Asks for `RequestSource.watch`: one frame for each change, until either side closes the connection."""

    after: int | None


class Clear(msgspec.Struct, frozen=True, tag=True):
    """Asks for `RequestSource.clear`."""


Question: TypeAlias = List | Total | Summarize | Fetch | Previous | Watch | Clear


class Refused(msgspec.Struct, frozen=True):
    """The question has no answer: the InvalidRequest that says why."""

    message: str
    status: int
    code: str | None
    param: str | None


class Reply(msgspec.Struct, frozen=True):
    """The result that was `found`, in MessagePack, or why there is none."""

    found: msgspec.Raw = msgspec.Raw(msgspec.msgpack.encode(None))
    refused: Refused | None = None


class Fetched(msgspec.Struct, frozen=True):
    """RequestContents, with the interaction as a recording."""

    recording: bytes
    secrets: tuple[str, ...]
    cached_tokens: int | None


def fetched(contents: RequestContents) -> Fetched:
    """Returns contents as they are sent. Raises RecordingError for some above the caps."""
    recording = write_recording(Recording().with_interactions([contents.interaction]))
    return Fetched(recording, contents.secrets, contents.cached_tokens)


def contents_of(found: Fetched) -> RequestContents:
    """Returns contents that were sent."""
    (interaction,) = read_recording(found.recording).interactions()
    return RequestContents(interaction, found.secrets, found.cached_tokens)


def write_frame(writer: asyncio.StreamWriter, value: object) -> None:
    """Writes a value of any type that msgspec knows."""
    data = msgspec.msgpack.encode(value)
    writer.write(len(data).to_bytes(_LENGTH, "big") + data)


async def read_frame(reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[T]) -> T:
    """Reads a value. Raises EOFError at the end of the connection, and ValueError for a frame of another version."""
    size = int.from_bytes(await reader.readexactly(_LENGTH), "big")
    return decoder.decode(await reader.readexactly(size))
