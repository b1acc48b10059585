"""Decodes the bytes of a response into events: frames, then messages, then what the rules read."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.carriers import Carrier
from adapters.proto.backend.delta_fast_path import DeltaFastPath
from adapters.proto.backend.frames import Frame
from adapters.proto.backend.read_rules import Rules
from adapters.proto.backend.rpc_status import grpc_error
from adapters.proto.backend.unknown_values import unknown_values
from gateway.adapter import DecoderExtensions
from gateway.core.errors import BackendError, BackendProtocolError, BackendTruncated
from gateway.core.events import Event
from gateway.core.malformed_event import TAIL_BROKEN, malformed_event
from gateway.protobuf.utf8_repair import Unsearchable, repair_texts, with_utf8
from gateway.wires.event_stream import empty_response

# A message that brought something is searched for unknown values this often.
_SEARCHED: Final = 64


class ProtoDecoder:
    """Decodes one response. `one_message`: the method returns a single message. `ends` is that of the options.
    `unchecked`: the runtime takes texts that are not UTF-8."""

    def __init__(
        self,
        carrier: Carrier,
        response: type[Message],
        rules: Rules,
        writer: AnswerWriter,
        arguments: ArgumentsReader,
        max_event: int,
        *,
        ends: str,
        one_message: bool,
        unchecked: bool,
    ) -> None:
        self.done = False
        self._carrier = carrier
        self._frames = carrier.frames(max_event)
        self._response = response
        self._rules = rules
        self._writer = writer
        self._arguments = arguments
        self._ends = ends
        self._one_message = one_message
        self._unchecked = unchecked
        self._messages = 0
        # A response of one message does not pay for what it would teach.
        several = not one_message and not carrier.one and rules.fields.texts_alone
        self._fast_path = DeltaFastPath(response, rules, writer) if several else None
        # Whether a message had only fields that the schema lacks, and whether one had another.
        self._strange = self._known = False

    @property
    def extensions(self) -> DecoderExtensions:
        """Returns the part that holds text back, and the readers of a status in the head and in the trailers."""
        return DecoderExtensions(self._writer, self, self)

    def head(self, headers: Mapping[str, str]) -> None:
        """Takes a status in the head of the response. Raises BackendError unless it is OK."""
        if self._carrier.reports_status and "grpc-status" in headers and (error := grpc_error(headers)):
            raise error

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events of the next bytes. Raises BackendError, which keeps the events before the fault."""
        try:
            self._read(self._frames.feed(data))
        except BackendError as error:
            error.keep(self._writer.take())
            raise
        return self._writer.take()

    def trailers(self, headers: Mapping[str, str]) -> list[Event]:
        """Returns the events that the status in the trailers completes. Raises BackendError, which keeps the events
        before it, unless the status is OK."""
        return self._collect(lambda: self._status(headers))

    def close(self) -> list[Event]:
        """Returns the events at the end of the bytes. Raises BackendTruncated, which keeps the events before it, unless
        the response was complete."""
        events = self._collect(self._end_of_bytes)
        self.done = True
        return events

    def _collect(self, read: Callable[[], None]) -> list[Event]:
        try:
            read()
        except BackendError as error:
            error.keep(self._writer.take())
            raise
        return self._writer.take()

    def _status(self, headers: Mapping[str, str]) -> None:
        if self.done or not self._carrier.http2:
            return
        if error := grpc_error(headers):
            raise error
        self._read(self._frames.end())
        self._end()

    def _end_of_bytes(self) -> None:
        if self.done:
            return
        try:
            self._read(self._frames.end())
        except BackendProtocolError as error:
            self._broken_tail(error)
        if self._writer.finished:
            return
        if self._writer.empty:
            self._check_type()
            if self._carrier.one or not self._messages:
                raise empty_response()
        if self._carrier.reports_status:
            raise BackendTruncated("The backend's response ended without a status.")
        if self._ends != "close":
            raise BackendTruncated("The backend's response ended before it was complete.")
        self._writer.complete()

    def _broken_tail(self, error: BackendProtocolError) -> None:
        """Judges what cannot be read at the end of the bytes: half an event, unless it is the whole response."""
        if self._carrier.one:
            raise error
        if not self._writer.finished:
            raise BackendTruncated("The backend's response ended in the middle of an event.") from error
        self._writer.add_once(TAIL_BROKEN)

    def _read(self, frames: Iterator[Frame]) -> None:
        fast_path, writer = self._fast_path, self._writer
        while not self.done:
            if fast_path is None or writer.over:
                frame = next(frames, None)
            else:
                # One of so many messages is read in full.
                count, frame = fast_path.write(frames, _SEARCHED - 1 - self._messages % _SEARCHED)
                self._messages += count
                if writer.stopped:
                    self.done = True
                    return
            if frame is None:
                return
            if type(frame) is bytes:
                self._message(frame)
            else:
                self._end()
        self._note_rest(frames)

    def _note_rest(self, frames: Iterator[Frame]) -> None:
        """Reports what follows the end, except after a response that was cut off on purpose. It cannot fail one."""
        try:
            followed = next(frames, None) is not None
        except BackendError:
            followed = True
        if followed and not self._writer.stopped:
            self._writer.note_once("ignored", "LATE_EVENT", "more data came after the end of the response")

    def _end(self) -> None:
        """Handles the carrier's own end, which confirms a response that is complete."""
        writer = self._writer
        if writer.empty:
            self._check_type()
            raise empty_response()
        if not writer.finished:
            if not writer.has_finish and self._ends == "finish":
                raise BackendTruncated("The backend ended its stream without the end that the mapping expects.")
            writer.complete()
        self.done = True

    def _message(self, payload: bytes) -> None:
        self._messages += 1
        if self._one_message and self._messages > 1:
            raise BackendProtocolError("The backend sent several messages instead of one.")
        writer = self._writer
        message = self._parsed(payload)
        writer.touched, pieces = False, writer.pieces
        self._rules.read(message, writer, self._arguments)
        if not writer.touched or self._messages % _SEARCHED == 0:
            self._search(message)
        elif self._fast_path is not None and writer.pieces == pieces + 1:
            self._fast_path.learn(payload)
        if writer.stopped:
            self.done = True
        elif writer.has_finish:
            writer.over = True
            if not self._carrier.reports_status:
                writer.complete()

    def _parsed(self, payload: bytes) -> Any:
        """Returns the message. Bytes of a text that are not UTF-8 become U+FFFD, with a notice. (Any: its class exists
        only at run time.)"""
        if self._unchecked and not payload.isascii():
            payload = self._checked(payload)
        try:
            return self._response.FromString(payload)
        except (DecodeError, ValueError, RecursionError) as error:
            repaired = repair_texts(payload, self._response)
            if repaired is None:
                raise _unreadable(payload) from error
        self._note_mended()
        return self._parsed(repaired)

    def _checked(self, payload: bytes) -> bytes:
        """Returns the message with texts that are UTF-8. The runtime checks those of proto3 itself."""
        try:
            checked = with_utf8(payload, self._response)
        except Unsearchable as error:
            raise _unreadable(payload) from error
        if checked is not payload:
            self._note_mended()
        return checked

    def _note_mended(self) -> None:
        self._writer.note_once("changed", "TEXT_MENDED", "bytes of a text that are not UTF-8 became U+FFFD")

    def _search(self, message: Any) -> None:
        known, found = bool(message.ListFields()), unknown_values(message)
        self._known |= known
        self._strange |= bool(found) and not known
        for notice in found:
            self._writer.add_once(notice)

    def _check_type(self) -> None:
        """Judges a response of which nothing was read. A newer version may send messages that the schema lacks before
        others; messages of another type have none but such."""
        if self._strange and not self._known:
            raise BackendProtocolError("The backend sent a message of another type than that of the schema.")


def _unreadable(payload: bytes) -> BackendProtocolError:
    message = "The backend sent an event that is not the protobuf message of the schema."
    return BackendProtocolError(message, notices=(malformed_event(payload),))
