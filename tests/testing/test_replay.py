import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import BackendTruncated
from gateway.core.events import Event, Finish, ResponseStart, TextDelta
from gateway.core.grammar import GrammarError
from gateway.testing.replay import cut, cuttings, replay
from tests.scripted import ScriptedDecoder

START, TEXT, FINISH = ResponseStart(), TextDelta("a"), Finish("stop")


def test_a_replay_is_all_the_events() -> None:
    assert replay(ScriptedDecoder([[START, TEXT], [FINISH]]), [b"."] * 2) == [START, TEXT, FINISH]


def test_nothing_is_fed_after_the_end() -> None:
    assert replay(ScriptedDecoder([[START, FINISH]]), [b".", b".", b"."]) == [START, FINISH]


def test_an_answer_that_ends_early_is_truncated() -> None:
    with pytest.raises(BackendTruncated):
        replay(ScriptedDecoder([[START], [FINISH]]), [b"."])


@pytest.mark.parametrize("script", [[[TEXT, FINISH]], [[START, START, FINISH]], [[FINISH]]])
def test_events_out_of_order_are_found(script: list[list[Event]]) -> None:
    with pytest.raises(GrammarError):
        replay(ScriptedDecoder(script), [b"."])


@given(st.binary(max_size=30), st.lists(st.integers(-5, 40)))
def test_pieces_are_the_wire(wire: bytes, places: list[int]) -> None:
    pieces = cut(wire, places)
    assert b"".join(pieces) == wire
    assert not wire or all(pieces)


def test_a_wire_is_cut_whole_bytewise_and_at_random_but_always_alike() -> None:
    wire = bytes(range(50))
    first, second, *others = cuttings(wire)
    assert first == [wire] and second == [bytes([byte]) for byte in wire]
    assert len(others) == 5 and len({tuple(cutting) for cutting in others}) > 1
    assert list(cuttings(wire)) == list(cuttings(wire))
    assert all(b"".join(cutting) == wire for cutting in cuttings(wire))


def test_an_empty_wire_can_be_cut() -> None:
    assert all(b"".join(cutting) == b"" for cutting in cuttings(b""))
