"""The contract of a backend: what an adapter is given, what it gives back, and what it says about itself.

An adapter is sans-IO: it never opens a socket, reads a clock, an environment variable or a file, and never logs.
"""

from collections.abc import Mapping
from typing import ClassVar, Protocol

import msgspec

from gateway.errors import BackendError
from gateway.events import Event
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation, Json


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Declared facts of a backend; what it cannot honour is emulated, refused or reported, never ignored.

    `honours` names the request fields (OpenAI chat names) that reach the backend with their meaning intact.
    `passthrough` says that every field does, known to us or not. `images` and `tools` say what turns may carry.
    `flattens` says that the conversation goes out as one text, so that a continuation turn may be needed.
    `continues` says that the model goes on with that text, so that it may write turns which are not its own.
    """

    honours: frozenset[str] = frozenset()
    passthrough: bool = False
    tools: bool = True
    images: bool = False
    flattens: bool = False
    continues: bool = False


class BackendRequest(msgspec.Struct, frozen=True):
    """One HTTP request to the backend, without its credential. `path` is joined to the backend's base_url.

    `accepts` lists the media types a 200 answer may have. `notices` tell what encoding had to change or leave out.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    accepts: tuple[str, ...]
    notices: tuple[Notice, ...] = ()
    method: str = "POST"


class Decoder(Protocol):
    """One response, bytes in, events out, in the order that `gateway.grammar` allows.

    `done` turns true when nothing more can come, so that a backend which holds its socket open delays nobody.
    """

    done: bool

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes, cut anywhere. Raises BackendError (BackendProtocolError for malformed bytes,
        BackendRejected for an error the backend sent in its stream) and nothing else. What the same bytes brought
        before the fault goes with it (`error.keep(events)`), so that no text depends on how the bytes were cut."""
        ...

    def close(self) -> list[Event]:
        """The bytes have ended. Raises BackendTruncated unless the answer was complete, like `feed` with what came."""
        ...


class Holding(Protocol):
    """What a Decoder also is that holds parts of an answer back until they are certain: `progress` grows with each of
    them, so that a backend which is busy is told from one that has stopped."""

    progress: int


class Adapter(Protocol):
    """One backend family. Constructed once per backend entry of settings.json with that entry's own options."""

    Options: ClassVar[type[msgspec.Struct]]
    capabilities: Capabilities

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        """A prepared conversation as a request. Deterministic; raises InvalidRequest for what cannot be said."""
        ...

    def decoder(self, conversation: Conversation) -> Decoder:
        """A fresh decoder for the answer to this conversation (its tools' schemas type the arguments)."""
        ...

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        """An answer other than 200, as the error the client shall see. Header names are lower case."""
        ...

    def readable(self, body: bytes) -> Json:
        """A body that `encode` made, as JSON for a person who asks what is sent."""
        ...
