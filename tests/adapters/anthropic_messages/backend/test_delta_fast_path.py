import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.anthropic_messages.backend.decoder import MessagesDecoder
from adapters.anthropic_messages.backend.delta_fast_path import DeltaFastPath, PieceEvent
from gateway.core.errors import BackendError
from gateway.core.events import Event, TextDelta
from gateway.testing.replay import replay
from tests.adapters.anthropic_messages.backend import wires
from tests.adapters.anthropic_messages.backend.wires import (
    TEXT,
    THINKING,
    arguments,
    call,
    end,
    grown,
    sse,
    start,
    text,
    thinking,
)

PLACE = TextDelta("a piece")


def read_piece(data: bytes) -> tuple[list[PieceEvent], list[Event], bytes | None]:
    """The pieces among one event, the events of the fast path, and what it leaves to be read in full."""
    pieces: list[PieceEvent] = []
    events: list[Event] = []

    def take(piece: PieceEvent) -> Event:
        pieces.append(piece)
        return PLACE

    left = DeltaFastPath(take).read(iter([data]), events)
    return pieces, events, left


OPENED: tuple[wires.Event, ...] = (
    {**TEXT},
    {**THINKING},
    call("a", "f"),
    {"type": "redacted_thinking", "data": "d"},
    {"type": "x"},
)


def written(event: wires.Event) -> bytes:
    return json.dumps(event).encode()


@pytest.mark.parametrize(
    "data",
    [
        written(grown(0, text("é\n")[0])),
        written(grown(0, thinking("a")[0])),
        written(grown(0, arguments('{"')[0])),
        written(grown(0, text("a")[0])).replace(b"}}", b"}          }"),
        b'{"index":0,"delta":{"text":"a","type":"text_delta"},"type":"content_block_delta"}',
    ],
)
def test_a_piece_is_read_at_once(data: bytes) -> None:
    (piece,), events, left = read_piece(data)
    assert (piece.index, events, left) == (0, [PLACE], None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        written({"type": "ping"}),
        written(start()),
        written(grown(0, text("")[0])),
        written(grown(0, thinking(signature="s")[0])),
        written({**grown(0, text("a")[0]), "x": 1}),
        written(grown(0, {**text("a")[0], "x": 1})),
        written({**grown(0, text("a")[0]), "index": "0"}),
        written(grown(0, text("?")[0])).replace(b"?", b"\\ud83d"),
        written(grown(0, text("?")[0])).replace(b"?", b"\xff"),
        written(grown(0, {"x": "?", **text("a")[0]})).replace(b'"?"', b"[" * 10_000 + b"]" * 10_000),
    ],
)
def test_any_other_event_is_read_in_full(data: bytes) -> None:
    assert read_piece(data) == ([], [], data)


DELTAS = st.one_of(
    st.builds(lambda piece: text(piece)[0], st.sampled_from(["", "a", "é", "\u2028", '"', "\ud83d"])),
    st.builds(lambda piece: thinking(piece)[0], st.sampled_from(["", "a"])),
    st.builds(lambda piece: arguments(piece)[0], st.sampled_from(["", "{", "}", "\ud83d"])),
    st.just(thinking(signature="s")[0]),
    st.just({"type": "citations_delta", "citation": {}}),
)
MORE: st.SearchStrategy[wires.Event] = st.sampled_from([{}, {}, {"x": 1}, {"type": "ping"}, {"index": True}])


def event(index: int, delta: wires.Event, more: wires.Event) -> wires.Event:
    """A delta, with these fields replaced or added."""
    return grown(index, delta) | more


EVENTS = st.builds(event, st.integers(-1, 5), DELTAS, MORE)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(st.lists(EVENTS, max_size=8), st.booleans())
def test_an_event_means_what_it_means_when_read_in_full(odd: list[wires.Event], own_client: bool) -> None:
    opened: list[wires.Event] = [
        {"type": "content_block_start", "index": index, "content_block": block} for index, block in enumerate(OPENED)
    ]
    closed: list[wires.Event] = [{"type": "content_block_stop", "index": index} for index in range(len(OPENED))]
    wire = sse(start(), *opened, *odd, *closed, *end())
    assert outcome(wire, own_client, fast=True) == outcome(wire, own_client, fast=False)


def outcome(wire: bytes, own_client: bool, *, fast: bool) -> tuple[list[Event], str]:
    with pytest.MonkeyPatch.context() as patched:
        if not fast:
            patched.setattr(DeltaFastPath, "read", lambda self, frames, events: next(frames, None))
        try:
            return replay(MessagesDecoder(1 << 20, own_client=own_client), [wire]), ""
        except BackendError as error:
            return [*error.events], error.message
