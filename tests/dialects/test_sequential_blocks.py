"""Events that interleave become blocks that follow one another, and nothing is lost or changed."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings

from gateway.core.conversation import EMPTY, ToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialects.sequential_blocks import (
    BlockDelta,
    BlockEnd,
    BlockEvent,
    BlockFields,
    BlockStart,
    BlockStep,
    OwnBlock,
    OwnEnd,
    OwnPiece,
    SequentialBlocks,
)
from gateway.testing.events import fold
from gateway.testing.strategies import answers

SIGNED = {"signature": "s"}
ONE, TWO = ToolCallStart(7, "k1", "f"), ToolCallStart(2, "k2", "g")


def steps_of(events: Iterable[BlockEvent]) -> list[BlockStep]:
    blocks = SequentialBlocks()
    return [step for event in events for step in blocks.feed(event)] + blocks.close()


def told(steps: Iterable[BlockStep]) -> str:
    """The steps in short: `text(` opens, its pieces follow, `)` closes."""
    words = []
    for step in steps:
        match step:
            case BlockStart():
                words.append(f"{step.number}:{step.kind if step.call is None else step.call.name}(")
            case BlockDelta():
                words.append(step.text)
            case BlockFields():
                words.append(f"[{' '.join(step.fields)}]")
            case BlockEnd():
                words.append(f"{step.state.get('signature', '')})")
    return " ".join(words)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ""),
        ([TextDelta("a"), TextDelta("b")], "0:text( a b )"),
        ([TextDelta("a"), ReasoningDelta("b"), TextDelta("c")], "0:text( a ) 1:reasoning( b ) 2:text( c )"),
        ([ReasoningDelta("a"), ReasoningEnd(SIGNED), ReasoningDelta("b")], "0:reasoning( a s) 1:reasoning( b )"),
        ([ReasoningDelta("a"), ReasoningEnd(EMPTY), ReasoningDelta("b")], "0:reasoning( a ) 1:reasoning( b )"),
        ([ReasoningEnd(SIGNED), TextDelta("a")], "0:reasoning( s) 1:text( a )"),
        ([TextDelta("a"), ReasoningEnd(EMPTY), TextDelta("b")], "0:text( a b )"),
        ([TextDelta("a"), ReasoningEnd(SIGNED), TextDelta("b")], "0:text( a ) 1:reasoning( s) 2:text( b )"),
        ([ONE, ToolCallDelta(7, "{"), ToolCallDelta(7, "}"), ToolCallEnd(7)], "0:f( { } )"),
        ([ONE, ToolCallEnd(7), TWO, ToolCallEnd(2)], "0:f( ) 1:g( )"),
        (
            [ONE, TWO, ToolCallDelta(2, "2"), ToolCallDelta(7, "1"), ToolCallEnd(2), ToolCallEnd(7)],
            "0:f( 1 ) 1:g( 2 )",
        ),
        (
            [
                ONE,
                TWO,
                ToolCallDelta(2, "a"),
                ToolCallDelta(2, "b"),
                ToolCallEnd(7),
                ToolCallDelta(2, "c"),
                ToolCallEnd(2),
            ],
            "0:f( ) 1:g( ab c )",
        ),
        (
            [ONE, TextDelta("a"), TextDelta("b"), ToolCallDelta(7, "1"), ToolCallEnd(7), TextDelta("c")],
            "0:f( 1 ) 1:text( ab c )",
        ),
        (
            [ONE, TextDelta("a"), TWO, TextDelta("b"), ToolCallEnd(7), ToolCallEnd(2)],
            "0:f( ) 1:text( a ) 2:g( ) 3:text( b )",
        ),
        (
            [ONE, ReasoningDelta("a"), ReasoningEnd(SIGNED), ReasoningDelta("b"), ToolCallEnd(7), ReasoningDelta("c")],
            "0:f( ) 1:reasoning( a s) 2:reasoning( b c )",
        ),
        ([ONE, ReasoningEnd(SIGNED), ReasoningEnd(EMPTY), ToolCallEnd(7)], "0:f( ) 1:reasoning( s)"),
        ([ONE, TextDelta("a"), ReasoningEnd(SIGNED), ToolCallEnd(7)], "0:f( ) 1:text( a ) 2:reasoning( s)"),
        ([TextDelta("a"), PassthroughFields("choice", {"x": 1})], "0:text( a ) 1:other( )"),
        ([ONE, PassthroughFields("choice", {}), TextDelta("a"), ToolCallEnd(7)], "0:f( ) 1:other( ) 2:text( a )"),
        ([TextDelta("a"), OwnBlock("text", {"x": 1}), TextDelta("b")], "0:text( a ) 1:text( b )"),
        ([TextDelta("a"), OwnPiece({"x": 1}), TextDelta("b")], "0:text( a [x] b )"),
        (
            [
                ONE,
                TextDelta("a"),
                OwnBlock("text", {}),
                TextDelta("b"),
                OwnPiece({"x": 1}),
                ToolCallEnd(7),
                TextDelta("c"),
            ],
            "0:f( ) 1:text( a ) 2:text( b [x] c )",
        ),
        (
            [OwnBlock("other", {}), OwnPiece({"x": 1}), OwnEnd(), OwnBlock("other", {}), OwnEnd(), TextDelta("a")],
            "0:other( [x] ) 1:other( ) 2:text( a )",
        ),
        (
            [OwnBlock("text", {}), OwnEnd(), OwnBlock("reasoning", {}), OwnEnd(), OwnPiece({"x": 1})],
            "0:text( ) 1:reasoning( [x] )",
        ),
        ([ONE, OwnPiece({"index": 7, "x": 1}, 7), OwnEnd(), ToolCallEnd(7)], "0:f( [index x] )"),
        (
            [
                ONE,
                OwnBlock("other", {}),
                OwnPiece({"x": 1}),
                OwnEnd(),
                OwnBlock("text", {}),
                TextDelta("a"),
                ToolCallEnd(7),
            ],
            "0:f( ) 1:other( [x] ) 2:text( a )",
        ),
        ([OwnPiece({"x": 1}), OwnEnd(), TextDelta("a")], "0:text( a )"),
    ],
)
def test_blocks_follow_one_another(events: list[BlockEvent], expected: str) -> None:
    assert told(steps_of(events)) == expected


def test_a_start_tells_what_its_block_is_made_of() -> None:
    other = PassthroughFields("choice", {"x": 1})
    starts = [step for step in steps_of([ReasoningEnd(SIGNED), other, ONE, ToolCallEnd(7)]) if type(step) is BlockStart]
    assert starts == [
        BlockStart(0, "reasoning", None, SIGNED),
        BlockStart(1, "other", None, {"x": 1}),
        BlockStart(2, "call", ONE),
    ]
    assert BlockStart(0, "text", None, {"x": 1}) in steps_of([OwnBlock("text", {"x": 1})])
    assert BlockStart(1, "text", None, {"x": 1}) in steps_of([ONE, OwnBlock("text", {"x": 1}), ToolCallEnd(7)])


def test_the_open_block_is_known() -> None:
    blocks = SequentialBlocks()
    seen = []
    for event in (TextDelta("a"), ReasoningDelta("b"), ReasoningEnd(EMPTY), ONE, TWO, ToolCallEnd(7), ToolCallEnd(2)):
        blocks.feed(event)
        seen.append((blocks.kind, blocks.call))
    assert seen == [
        ("text", None),
        ("reasoning", None),
        (None, None),
        ("call", 7),
        ("call", 7),
        ("call", 2),
        (None, None),
    ]


@settings(max_examples=2 * settings().max_examples, deadline=None, database=None)
@given(answers())
def test_nothing_is_lost_and_one_block_is_open_at_a_time(events: list[Event]) -> None:
    text, reasoning, opened = "", "", 0
    calls: list[ToolCall] = []
    current: BlockStart | None = None
    said = [event for event in events if not isinstance(event, ResponseStart | UsageReport | Notice | Finish)]
    for step in steps_of(said):
        match step:
            case BlockStart():
                assert current is None and step.number == opened
                current, opened = step, opened + 1
                if step.call is not None:
                    calls.append(ToolCall(step.call.id, step.call.name, ""))
            case BlockDelta():
                assert current is not None and step.text
                match current.kind:
                    case "text":
                        text += step.text
                    case "reasoning":
                        reasoning += step.text
                    case _:
                        calls[-1] = ToolCall(calls[-1].id, calls[-1].name, calls[-1].arguments + step.text)
            case BlockFields():
                raise AssertionError("no event has such fields")
            case BlockEnd():
                assert current is not None
                current = None
    assert current is None
    whole = fold(events)
    assert (text, reasoning, tuple(calls)) == (whole.text, whole.reasoning, whole.calls)
