"""Defines the lines of a recording, one value for each `kind`. docs/recordings.md describes every field."""

import base64
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import EMPTY, NO_REQUEST
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.session import Session
from gateway.dialect import AnswerTimes

FORMAT: Final = 1
MAX_LINE: Final = 16 * 2**20
MAX_FILE: Final = 256 * 2**20

Side: TypeAlias = Literal["backend", "client"]
RedactionLevel: TypeAlias = Literal["none", "shape", "full"]
# Any: msgspec cannot resolve a type that names itself in another module.
Fields: TypeAlias = Mapping[str, Any]
# Why the bytes of a body are not in the recording.
Absence: TypeAlias = Literal["never_kept", "evicted", "over_the_cap"]
# What ended a response before it was complete.
Cut: TypeAlias = Literal["fin", "reset", "timeout", "client_gone"]


class Data(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes: as `text` where they are UTF-8, else as `base64`."""

    text: str | None = None
    base64: str | None = None

    @property
    def content(self) -> bytes:
        """Returns the bytes. Raises ValueError for base64 that is none."""
        if self.base64 is not None:
            return base64.b64decode(self.base64, validate=True)
        return (self.text or "").encode()


def data_of(content: bytes) -> Data:
    """Returns bytes as they are written."""
    try:
        return Data(text=content.decode())
    except UnicodeDecodeError:
        return Data(base64=base64.b64encode(content).decode())


class Redaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the recording was redacted. `kept` are the texts that stayed although the level covers them, and `checked`:
    it gives the same notices and outcome as before."""

    level: RedactionLevel = "none"
    kept: tuple[str, ...] = ()
    checked: bool = False


class HeaderLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line. `gateway` is the version that wrote it, `made` the time (RFC 3339)."""

    format: int = FORMAT
    gateway: str = ""
    made: str = ""
    redaction: Redaction = Redaction()
    note: str = ""
    unknown: Fields = EMPTY


class Beginning(msgspec.Struct, frozen=True, omit_defaults=True):
    """The beginning of a body that is not here as a whole, which has so many `bytes`."""

    data: Data
    bytes: int


class RequestLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The client's request. `path` has its query, without a key; of the headers only the harmless ones are here.
    `session` is the one that the client names. `beginning` is that of a body that is `absent`."""

    x: int
    id: str
    dialect: str
    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: Data | None = None
    absent: Absence | None = None
    session: Session | None = None
    beginning: Beginning | None = None
    unknown: Fields = EMPTY


class RouteLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The route: the client's `model`, its `name` at the backend (empty: the same), the backend's entry without its
    address and its credential, and the whole effective policy. `max_event` is in bytes. `state`: what the gateway
    keeps of other requests had a part in this one, or pictures or PDFs were read for it, which cannot be made again.
    `label` is that of the backend's opaque state; empty in a recording of a gateway that set none."""

    x: int
    model: str
    backend: str
    adapter: str
    name: str = ""
    options: Fields = EMPTY
    profile: str = ""
    policy: Fields = EMPTY
    max_event: int = 4 * 2**20
    state: bool = False
    label: str = ""
    context_length: int | None = None
    unknown: Fields = EMPTY


class SentLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The request to the backend, with the adapter's own headers. `path` follows the backend's base_url. `request_id`
    is the id that was made for it, if any."""

    x: int
    method: str
    path: str
    t: float = 0
    headers: Mapping[str, str] = {}
    body: Data | None = None
    http2: bool = False
    absent: Absence | None = None
    request_id: str = NO_REQUEST
    unknown: Fields = EMPTY


class HeadLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The head of a response. `compressed`: the backend had compressed the body, which is here decompressed."""

    x: int
    side: Side
    t: float
    status: int
    headers: Mapping[str, str] = {}
    compressed: bool = False
    unknown: Fields = EMPTY


class BytesLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One read from the backend, or one write to the client. `quiet`: a keep-alive, written while nothing came."""

    x: int
    side: Side
    t: float
    data: Data
    quiet: bool = False
    unknown: Fields = EMPTY


class GapLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """So many bytes of one side are missing here."""

    x: int
    side: Side
    t: float
    bytes: int
    absent: Absence = "over_the_cap"
    unknown: Fields = EMPTY


class CloseLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The backend's body is complete; its trailers, if any."""

    x: int
    t: float
    trailers: Mapping[str, str] = {}
    unknown: Fields = EMPTY


class AnswerLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts of the answer that no event tells: `unique` and `created` as in `AnswerHead`, and every time that its
    clock was asked for. `stored`: it was to be stored. `times` is how long its parts took, where it says that."""

    x: int
    unique: str
    created: int
    clock: tuple[int, ...] = ()
    stored: bool = False
    times: AnswerTimes | None = None
    unknown: Fields = EMPTY


class TryLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A try with another model than that of the route, which failed at this time: its model and backend, the `code` of
    its error, and the `status` of the backend's response (0: there was none). No bytes of it are here."""

    x: int
    t: float
    model: str
    backend: str
    code: str
    status: int = 0
    unknown: Fields = EMPTY


class NoticeLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A notice, in the order in which the gateway made them."""

    x: int
    t: float
    notice: Notice
    unknown: Fields = EMPTY


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as the client got it. `upstream`: it is the backend's. `own_words` replace those of the backend."""

    message: str
    status: int
    kind: str
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = {}
    extra: Fields = EMPTY
    own_words: tuple[str, str] | None = None
    upstream: bool = False


class Marks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Milliseconds from the head of the client's request until its body was read, the request to the backend was ready,
    and was written; the head, the first and the last bytes of the response arrived; the request ended."""

    read: float | None = None
    prepared: float | None = None
    connected: float | None = None
    head: float | None = None
    first: float | None = None
    last: float | None = None
    end: float | None = None


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """The token counts of the answer. None: not known."""

    prompt: int | None = None
    completion: int | None = None


class EndLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome. `status` is that of the client's response (0: it got none, 499: it left), `code` that of the error
    (empty: none)."""

    x: int
    status: int
    code: str = ""
    phase: str = ""
    usage: Tokens | None = None
    marks: Marks = Marks()
    cut: Cut | None = None
    failure: Failure | None = None
    unknown: Fields = EMPTY


class UnknownLine(msgspec.Struct, frozen=True):
    """A line of a kind that this version does not know. `x` is 0 where it belongs to no exchange."""

    kind: str
    x: int
    unknown: Fields


Line: TypeAlias = (
    HeaderLine
    | RequestLine
    | RouteLine
    | SentLine
    | HeadLine
    | BytesLine
    | TryLine
    | GapLine
    | CloseLine
    | AnswerLine
    | NoticeLine
    | EndLine
    | UnknownLine
)


class RecordingError(InvalidRequest):
    """A file is no recording, or breaks a rule of the format; the message names the line."""
