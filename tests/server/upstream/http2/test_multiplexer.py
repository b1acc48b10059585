"""Tests the multiplexer without IO: whatever is cut, shrunk or given back, no response is complete before its end."""

from collections.abc import Sequence

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamReset, WindowUpdated
from h2.settings import SettingCodes

from gateway.server.upstream.http2.multiplexer import CONNECTION_WINDOW, MAX_STREAMS, Multiplexer
from gateway.server.upstream.http2.request_head import Fields, Http2Request
from gateway.server.upstream.http2.stream_response import WINDOW, StreamResponse
from tests.server.upstream.http2.peer import HEAD, OK

FIELDS: Fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x"), (b":path", b"/"))


class Pair:
    """A multiplexer and the backend's side of its connection."""

    def __init__(self, settings: dict[int, int] | None = None) -> None:
        self.client = Multiplexer()
        self.backend = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.backend.local_settings.update(settings or {})
        self.backend.local_settings.acknowledge()
        self.backend.initiate_connection()
        self.seen: list[Event] = []
        self.exchange()

    def exchange(self) -> None:
        """Pass on what both sides have to say."""
        while (asked := self.client.output()) + (answered := self.backend.data_to_send()):
            self.seen += self.backend.receive_data(asked)
            self.client.feed(answered, 0)

    def ask(self, body: bytes = b"body") -> tuple[int, StreamResponse]:
        stream, response = self.client.begin(Http2Request(FIELDS, body), 2**30)
        while self.client.send_bodies():
            pass
        self.exchange()
        return stream, response

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.seen if isinstance(event, kind)]


def test_a_response_that_is_cut_anywhere_is_not_complete() -> None:
    recorded = Pair()
    stream, _ = recorded.ask()
    recorded.backend.send_headers(stream, HEAD)
    recorded.backend.send_data(stream, b"abc", pad_length=3)
    recorded.backend.send_headers(stream, OK, end_stream=True)
    wire = recorded.backend.data_to_send()
    for end in range(len(wire) + 1):
        pair = Pair()
        _, response = pair.ask()
        for at in range(end):
            pair.client.feed(wire[at : at + 1], 0)
        assert response.ended == (end == len(wire))
        assert b"abc".startswith(response.read()) and not (response.trailers and end < len(wire))


def test_before_the_first_settings_nothing_may_be_sent() -> None:
    assert Multiplexer().available_streams == 0
    assert Pair().client.available_streams == 100


@pytest.mark.parametrize(("allowed", "room"), [(0, 0), (7, 7), (2**32 - 1, MAX_STREAMS)])
def test_the_room_is_what_the_backend_allows(allowed: int, room: int) -> None:
    pair = Pair({SettingCodes.MAX_CONCURRENT_STREAMS: allowed})
    assert pair.client.available_streams == room
    pair.backend.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 3})
    pair.exchange()
    pair.seen.clear()
    (one, _), (two, _) = pair.ask(), pair.ask()
    assert pair.client.available_streams == 1
    pair.backend.send_headers(one, HEAD, end_stream=True)
    pair.exchange()
    pair.client.leave(two)
    pair.exchange()
    assert pair.client.available_streams == 3
    assert [event.stream_id for event in pair.of(StreamReset) if isinstance(event, StreamReset)] == [two]


def received(events: Sequence[Event], stream: int) -> int:
    return sum(len(one.data) for one in events if isinstance(one, DataReceived) and one.stream_id == stream)


def test_a_body_follows_the_windows_up_and_down() -> None:
    pair = Pair({SettingCodes.INITIAL_WINDOW_SIZE: 1000, SettingCodes.MAX_FRAME_SIZE: 2**15})
    stream, _ = pair.ask(b"x" * 5000)
    assert received(pair.seen, stream) == 1000
    # The window becomes negative: what is given back first makes it 0 again.
    pair.backend.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 400})
    pair.exchange()
    pair.backend.increment_flow_control_window(700, stream)
    pair.exchange()
    while pair.client.send_bodies():
        pair.exchange()
    assert received(pair.seen, stream) == 1100
    pair.backend.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10_000})
    pair.exchange()
    while pair.client.send_bodies():
        pair.exchange()
    assert received(pair.seen, stream) == 5000 and pair.client.is_sent(stream)


def test_a_stream_is_given_back_what_was_read_and_the_connection_what_arrived() -> None:
    pair = Pair()
    stream, response = pair.ask()
    pair.backend.send_headers(stream, HEAD)
    for _ in range(4):
        pair.backend.send_data(stream, b"x" * 2**14)
    pair.exchange()
    assert pair.backend.local_flow_control_window(stream) == 0 and not pair.of(WindowUpdated)[1:]
    assert len(response.read()) == response.unacknowledged == WINDOW
    pair.client.acknowledge(stream, response)
    pair.exchange()
    assert (pair.backend.local_flow_control_window(stream), response.unacknowledged) == (WINDOW, 0)
    for _ in range(CONNECTION_WINDOW // WINDOW):
        other, _ = pair.ask()
        pair.backend.send_headers(other, HEAD)
        for _ in range(4):
            pair.backend.send_data(other, b"y" * 2**14)
        pair.client.feed(pair.backend.data_to_send(), 0)
        pair.client.leave(other)
        pair.exchange()
    assert pair.backend.outbound_flow_control_window > CONNECTION_WINDOW // 4


def test_padding_is_given_back_although_nobody_reads_it() -> None:
    pair = Pair()
    stream, response = pair.ask()
    pair.backend.send_headers(stream, HEAD)
    for _ in range(100):
        pair.backend.send_data(stream, b"x", pad_length=255)
    pair.exchange()
    assert (response.unacknowledged, response.waiting) == (100 * 256, 100)


def test_what_arrives_for_a_stream_that_was_left_disturbs_nothing() -> None:
    pair = Pair()
    left, _ = pair.ask()
    stream, response = pair.ask()
    pair.backend.send_headers(left, HEAD)
    pair.backend.send_data(left, b"late")
    pair.backend.send_headers(left, OK, end_stream=True)
    pair.client.leave(left)
    pair.client.feed(pair.backend.data_to_send(), 0)
    pair.exchange()
    pair.backend.send_headers(stream, HEAD, end_stream=True)
    pair.exchange()
    assert response.ended and pair.client.available_streams == 100
    assert len(pair.of(RequestReceived)) == 2
