"""Reads the body of a request that is passed on, and finds the model in its beginning: the body itself stays where it
is, but for what must be read before its backend is known."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Final

from gateway.core.errors import InvalidRequest
from gateway.framing.body_field import BodyField, FieldFault
from gateway.framing.form_field import BOUNDARY, FormField
from gateway.framing.json_field import JsonField
from gateway.server.access.request_checks import JSON
from gateway.server.http.read_body import too_large
from gateway.server.http.request_body import RequestBody
from gateway.server.upstream.deadlines import ClientDisconnected
from gateway.server.upstream.http.headers import is_header_value

MODEL: Final = "model"
# So much of a body is read, and held, to find the model.
BEGINNING: Final = 8 * 2**20
_SMALL: Final = 128 * 1024
# So much of it is searched at once; other requests are served between.
SLICE: Final = 16 * 1024
_FORM: Final = b"multipart/form-data"
# Of this one no API has a route, and any web page can post it.
_URL_ENCODED: Final = b"application/x-www-form-urlencoded"
_BOUNDARY: Final = re.compile(r'[ \t]*boundary=(?:"([^"]*)"|([^\s;"]*))[ \t]*', re.IGNORECASE)
_CHARSET: Final = re.compile(r'[ \t]*charset="?utf-8"?[ \t]*', re.IGNORECASE)


class ClientBody:
    """The body of a request with this head: at most `limit` bytes. `media_type` is what the backend is told that it is
    (empty: nothing), `length` its size (None: it comes as chunks), and `size` what has arrived of it."""

    def __init__(self, request_body: RequestBody, head: Mapping[bytes, bytes], limit: int) -> None:
        """Raises InvalidRequest for a body that is too large, compressed, or of a media type that is not passed on."""
        if head.get(b"content-encoding", b"").strip().lower() not in (b"", b"identity"):
            raise _unsupported("The body of a request that is passed on must not be compressed.")
        self._request_body = request_body
        self._limit = limit
        declared = head.get(b"content-length", b"")
        self.length = None if b"transfer-encoding" in head else int(declared) if declared else 0
        if self.length is not None and self.length > limit:
            raise too_large(limit)
        self._declared = self.length
        self.size = 0
        self.media_type, self._field = _read_media_type(head.get(b"content-type", b""))
        self._held = b""

    @property
    def complete(self) -> bool:
        """Whether all of it has arrived."""
        return not self._request_body.more and not self._request_body.news

    async def read_model(self) -> str | None:
        """Reads on until the model is known, and returns its name; None: the body names none. Raises InvalidRequest,
        and ClientDisconnected."""
        if self._field is None and self.length != 0:
            return None
        pieces: list[bytes] = []
        last = False
        # A small body is read as a whole: it can then be sent again, and on a connection that is open.
        small = self.length is not None and self.length <= _SMALL
        while not last and (small or self._field is None or self._field.value is None):
            piece, last = await self._next()
            await self._feed(piece, last=last)
            pieces.append(piece)
            if not last and not small and self.size > BEGINNING:
                raise InvalidRequest(
                    f"The model is not named in the first {BEGINNING >> 20} MiB of the body: put the field {MODEL!r} "
                    "before the others.",
                    param=MODEL,
                )
        self._held = b"".join(pieces)
        return None if self._field is None else self._field.value

    def name_model(self, name: str) -> None:
        """Replaces the name of the model, and nothing else. Raises InvalidRequest for one that cannot stand there."""
        assert self._field is not None  # the model was found in it
        start, end = self._field.span
        try:
            named = self._field.encode(name)
        except FieldFault as error:
            raise _fault(error) from None
        self._held = self._held[:start] + named + self._held[end:]
        if self.length is not None:
            self.length += len(named) - (end - start)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the bytes to send, each once. Raises InvalidRequest before the last of them where the body turns out
        to name two models, and ClientDisconnected."""
        held, self._held = self._held, b""
        if held:
            yield held
        last = self.complete
        while not last:
            piece, last = await self._next()
            await self._feed(piece, last=last)
            yield piece

    def whole(self) -> bytes:
        """Returns the bytes to send of a body that is complete."""
        return self._held

    async def _next(self) -> tuple[bytes, bool]:
        body = self._request_body
        if not body.news:
            await body.wait()
        if body.over:
            raise ClientDisconnected
        piece = body.read()
        self.size += len(piece)
        if self.size > self._limit:
            raise too_large(self._limit)
        last = not body.more
        # Not every ASGI server holds a body to its length, behind which a backend would read another request.
        if self._declared is not None and (self.size > self._declared or (last and self.size < self._declared)):
            raise InvalidRequest(
                "The request body does not have the length that its head declares.", code="invalid_http"
            )
        return piece, last

    async def _feed(self, piece: bytes, *, last: bool) -> None:
        if self._field is None:
            return
        try:
            for start in range(0, len(piece), SLICE):
                if start:
                    await asyncio.sleep(0)
                self._field.feed(piece[start : start + SLICE])
            if last and self.size:
                self._field.close()
        except FieldFault as error:
            raise _fault(error) from None


def _read_media_type(sent: bytes) -> tuple[str, BodyField | None]:
    """Returns a media type as the backend is told it, and what finds the model in such a body; None: it has no place
    for one."""
    kind, *parameters = sent.split(b";")
    kind = kind.strip().lower()
    named = [parameter.decode("latin-1") for parameter in parameters]
    if kind == JSON:
        if not all(_CHARSET.fullmatch(parameter) for parameter in named):
            raise _unsupported("JSON must be sent in UTF-8.")
        return JSON.decode(), JsonField(MODEL)
    if kind == _FORM:
        # Where two readers could see different boundaries, they would see different forms.
        found = _BOUNDARY.fullmatch(named[0]) if len(named) == 1 else None
        boundary = "" if found is None else found[1] or found[2] or ""
        if not BOUNDARY.fullmatch(boundary):
            raise _unsupported("A form must be sent with one boundary, of letters, digits and the characters '+_.-")
        return f"{_FORM.decode()}; boundary={boundary}", FormField(MODEL, boundary)
    if kind == _URL_ENCODED:
        raise _unsupported("A form must be sent as multipart/form-data.")
    text = sent.decode("latin-1")
    if not is_header_value(text):
        raise _unsupported("The content type has a character that no header can have.")
    return text, None


def _fault(error: FieldFault) -> InvalidRequest:
    return InvalidRequest(f"The request body cannot be passed on: {error}.", param=MODEL)


def _unsupported(message: str) -> InvalidRequest:
    return InvalidRequest(message, status=415, code="unsupported_media_type")
