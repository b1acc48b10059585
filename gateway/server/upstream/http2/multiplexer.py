"""Turns the bytes of an HTTP/2 connection into the responses of its streams, and requests into bytes. No IO.

`h2` encodes requests, and decodes every frame but two. DATA, of which each chunk of a response is one, takes `h2` 20
microseconds and this module 2; so the windows of what arrives are kept here. GOAWAY is handled here, because `h2` takes
no frame after it, whereas a backend that shuts down still completes the streams it has begun (RFC 9113, section 6.8).
"""

import struct
from collections.abc import Mapping
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import Event, RemoteSettingsChanged, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from gateway.server.upstream.http.errors import (
    HttpError,
    HttpProtocolError,
    Throttled,
    TLSError,
    Truncated,
    Unprocessed,
)
from gateway.server.upstream.http.headers import MAX_HEAD
from gateway.server.upstream.http2.frames import (
    END_STREAM,
    FRAMES_PER_DATA,
    FRAMES_PER_REQUEST,
    Frame,
    FrameReader,
    FrameType,
    window_update,
)
from gateway.server.upstream.http2.request_head import Http2Request
from gateway.server.upstream.http2.stream_response import WINDOW, StreamResponse

# Streams on one connection: where the backend does not say how many it allows, and at most.
DEFAULT_STREAMS: Final = 100
MAX_STREAMS: Final = 1000
# The requests that one connection serves: `h2` remembers the streams that have ended.
MAX_REQUESTS: Final = 2**14
# What arrives is given back to the connection's window at once, because each stream holds no more than its own window.
CONNECTION_WINDOW: Final = 2**24
_DEFAULT_WINDOW: Final = 2**16 - 1
_SETTINGS: Final[dict[SettingCodes, int]] = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
    SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEAD,
}
# Where every frame counts: to read a member from its class takes a call in Python 3.11.
_DATA: Final = FrameType.DATA
_GOAWAY: Final = struct.Struct(">II")
_STREAM_ID: Final = 2**31 - 1
# The codes of RST_STREAM and GOAWAY that say more than that the response does not come.
_CODES: Final[Mapping[int, type[HttpError]]] = {
    ErrorCodes.ENHANCE_YOUR_CALM: Throttled,
    ErrorCodes.INADEQUATE_SECURITY: TLSError,
}


class Multiplexer:
    """Call `feed` with what arrives, and send what `output` returns after each call of any method.

    `settings_received`: the backend's first SETTINGS have come. `draining`: no further request can be begun.
    """

    def __init__(self) -> None:
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self._frames = FrameReader()
        # The streams whose response is not complete, and what is left of the bodies of requests.
        self._responses: dict[int, StreamResponse] = {}
        self._unsent: dict[int, memoryview] = {}
        self._begun = 0
        self._last_id = 0
        # The bytes that have arrived and were not given back to the connection's window, and frames to send for that.
        self._arrived = 0
        self._updates = b""
        self._touched: set[int] = set()
        self.settings_received = False
        self.draining = False
        self._h2.local_settings = Settings(client=True, initial_values=_SETTINGS)
        self._h2.initiate_connection()
        self._updates = window_update(0, CONNECTION_WINDOW - _DEFAULT_WINDOW)

    @property
    def available_streams(self) -> int:
        """The number of further requests that can be begun now."""
        if self.draining or not self.settings_received:
            return 0
        allowed = self._h2.remote_settings.get(SettingCodes.MAX_CONCURRENT_STREAMS, DEFAULT_STREAMS)
        return min(allowed, MAX_STREAMS) - len(self._responses)

    def output(self) -> bytes:
        """Returns the bytes to send, and forgets them."""
        updates, self._updates = self._updates, b""
        return self._h2.data_to_send() + updates

    def begin(self, request: Http2Request, most: int) -> tuple[int, StreamResponse]:
        """Begins a request; returns the number of its stream, and its response with a body of at most so many bytes.
        Its body follows with `send_bodies`."""
        stream_id = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream_id, request.fields, end_stream=not request.body)
        self._frames.allow(FRAMES_PER_REQUEST)
        self._begun += 1
        self._last_id = stream_id
        self.draining = self.draining or self._begun >= MAX_REQUESTS
        response = self._responses[stream_id] = StreamResponse(most)
        if request.body:
            self._unsent[stream_id] = memoryview(request.body)
        return stream_id, response

    def send_bodies(self) -> bool:
        """Sends a frame of every body that the windows allow. Returns whether any was sent."""
        sent = False
        for stream_id, left in tuple(self._unsent.items()):
            size = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size, len(left))
            if size > 0:
                sent = True
                self._frames.allow(FRAMES_PER_DATA)
                self._h2.send_data(stream_id, left[:size], end_stream=size == len(left))
                if size == len(left):
                    del self._unsent[stream_id]
                else:
                    self._unsent[stream_id] = left[size:]
        return sent

    def is_sent(self, stream_id: int) -> bool:
        """Returns whether the whole request has been sent."""
        return stream_id not in self._unsent

    def acknowledge(self, stream_id: int, response: StreamResponse) -> None:
        """Widens the window of a stream by the bytes that were read."""
        if stream_id in self._responses and response.unacknowledged:
            self._updates += window_update(stream_id, response.acknowledge())

    def leave(self, stream_id: int) -> bool:
        """Ends a stream. Returns whether it was not complete, and is cancelled."""
        if self._responses.pop(stream_id, None) is None:
            return False
        self._unsent.pop(stream_id, None)
        self._h2.reset_stream(stream_id, ErrorCodes.CANCEL)
        return True

    def ping(self) -> None:
        """Asks the backend for a sign of life."""
        self._h2.ping(bytes(8))

    def close(self) -> None:
        """Says that the connection ends."""
        self._h2.close_connection()

    def feed(self, data: bytes, now: float) -> set[int]:
        """Accepts the next bytes, cut anywhere, at this time in seconds. Returns the streams whose responses have
        changed. Raises HttpProtocolError, after the frames before the fault."""
        self._touched = set()
        try:
            for frame in self._frames.feed(data, now):
                if frame.type == _DATA:
                    self._on_data(frame)
                elif frame.type == FrameType.GOAWAY:
                    self._on_goaway(frame)
                else:
                    for event in self._h2.receive_data(frame.encoded()):
                        self._on_event(event)
        except ProtocolError as error:
            raise HttpProtocolError from error
        if self._arrived > CONNECTION_WINDOW // 2:
            self._updates += window_update(0, self._arrived)
            self._arrived = 0
        return self._touched

    def _on_data(self, frame: Frame) -> None:
        stream_id = frame.stream_id
        self._arrived += len(frame.payload)
        if self._arrived > CONNECTION_WINDOW or stream_id > self._last_id or not stream_id % 2:
            raise HttpProtocolError
        if response := self._changed(stream_id):
            response.on_data(frame.unpadded(), len(frame.payload))
            if frame.flags & END_STREAM:
                self._on_end(stream_id)
                # `h2` need not know how the stream has ended, but that it has.
                self._h2.receive_data(Frame(FrameType.RST_STREAM, 0, stream_id, bytes(4)).encoded())

    def _on_event(self, event: Event) -> None:
        match event:
            case ResponseReceived(stream_id=stream_id, headers=fields):
                if response := self._changed(stream_id):
                    response.on_head(fields)
            case TrailersReceived(stream_id=stream_id, headers=fields):
                if response := self._changed(stream_id):
                    response.on_trailers(fields)
            case StreamEnded(stream_id=stream_id):
                self._on_end(stream_id)
            case StreamReset(stream_id=stream_id, error_code=code):
                self._on_reset(stream_id, code)
            case RemoteSettingsChanged():
                self.settings_received = True
            case _:
                # `h2` has answered every other frame.
                pass

    def _changed(self, stream_id: int) -> StreamResponse | None:
        """Returns the response that a frame belongs to; None where it is not read any more."""
        self._touched.add(stream_id)
        return self._responses.get(stream_id)

    def _on_end(self, stream_id: int) -> None:
        if response := self._changed(stream_id):
            response.on_end()
            if stream_id in self._unsent:
                # The backend has said all, and needs no more of the request.
                self.leave(stream_id)
            else:
                del self._responses[stream_id]

    def _on_reset(self, stream_id: int, code: int) -> None:
        if response := self._changed(stream_id):
            refused = code == ErrorCodes.REFUSED_STREAM and not response.status
            self._fail(stream_id, Unprocessed if refused else _CODES.get(code, Truncated))

    def _on_goaway(self, frame: Frame) -> None:
        if len(frame.payload) < _GOAWAY.size:
            raise HttpProtocolError
        last, code = _GOAWAY.unpack_from(frame.payload)
        self.draining = True
        for stream_id in [stream_id for stream_id in self._responses if stream_id > last & _STREAM_ID]:
            self._touched.add(stream_id)
            self._fail(stream_id, _CODES.get(code, Unprocessed))

    def _fail(self, stream_id: int, error: type[HttpError]) -> None:
        """Ends a stream that the backend has closed."""
        self._unsent.pop(stream_id, None)
        self._responses.pop(stream_id).fail(error())
