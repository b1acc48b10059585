"""Defines hypothesis strategies: valid conversations and answers, hostile text, wires cut or damaged at random."""

import json
from typing import Final, get_args

from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.events import (
    Event,
    Finish,
    Reason,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.testing.replay import cut

# Pieces that have broken gateways before: labels, quotes, line boundaries of every kind, joined characters.
HOSTILE: Final = (
    *(
        "User: ",
        "Assistant: ",
        "Tool result (k0): ",
        "Tool calls: Called f with args: {}",
        "System:",
        "> ",
        "\n",
        "\n\n",
    ),
    *(
        "\r",
        "\r\n",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        "\x00",
        "\ufeff",
        '"',
        "\\",
        "data: [DONE]\n\n",
    ),
    *("e\u0301", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "日本", "```", "<|im_end|>", "{}", "call_mcp_tool"),
)

TOOLS: Final = (
    ToolSpec("f", "One.", {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}),
    ToolSpec("g", "Two.", {"type": "object", "properties": {}}),
)


def texts(min_size: int = 0) -> st.SearchStrategy[str]:
    """Generates text that mixes harmless words with hostile pieces. It has no lone surrogate, because those are
    repaired before the core."""
    piece = st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=8)
    return st.lists(piece, min_size=min_size, max_size=6).map("".join)


def arguments() -> st.SearchStrategy[str]:
    """Generates the JSON text of a call's arguments: always an object."""
    value = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts()
    return st.dictionaries(st.sampled_from("nsx"), value, max_size=3).map(lambda made: json.dumps(made))


@st.composite
def conversations(draw: st.DrawFn, tools: bool = True) -> Conversation:
    """Generates a conversation that breaks no rule of the message protocol: every call has its result, in order,
    exactly once.

    It ends with a user turn, or with tool results that wait for the assistant. Without `tools` there are no calls.
    """
    conversation = [Turn("system", (Text(draw(texts(1))),))] if draw(st.booleans()) else []
    conversation.append(_user(draw))
    calls = 0
    for _ in range(draw(st.integers(0, 3))):
        if tools and draw(st.booleans()):
            made = [
                ToolCall(f"k{calls + n}", draw(st.sampled_from("fg")), draw(arguments()))
                for n in range(draw(st.integers(1, 3)))
            ]
            calls += len(made)
            text = (Text(draw(texts(1))),) if draw(st.booleans()) else ()
            conversation.append(Turn("assistant", (*text, *made)))
            conversation += [Turn("tool", (ToolResult(call.id, (Text(draw(texts())),)),)) for call in made]
        else:
            conversation += [Turn("assistant", (Text(draw(texts(1))),)), _user(draw)]
    return Conversation(
        tuple(Turn(turn.role, turn.blocks, index=index) for index, turn in enumerate(conversation)),
        tools=TOOLS if tools else (),
        model="model",
        stream=draw(st.booleans()),
    )


def _user(draw: st.DrawFn) -> Turn:
    return Turn("user", (Text(draw(texts(1))),))


def pieces(wire: bytes) -> st.SearchStrategy[list[bytes]]:
    """Cuts the wire at random offsets."""
    return st.sets(st.integers(0, len(wire)), max_size=12).map(lambda places: cut(wire, places))


@st.composite
def damaged(draw: st.DrawFn, wire: bytes) -> bytes:
    """Replaces up to four ranges of the wire by other bytes, by other ranges of itself, or by nothing."""
    made = wire
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted((draw(st.integers(0, len(made))), draw(st.integers(0, len(made)))))
        if draw(st.booleans()):
            end = min(end, start + 3)
        other, another = sorted((draw(st.integers(0, len(wire))), draw(st.integers(0, len(wire)))))
        filler = draw(st.just(b"") | st.binary(max_size=8) | st.just(wire[other:another]))
        made = made[:start] + filler + made[end:]
    return made


_PIECES: Final = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6) | st.sampled_from(
    ["\u2028", "\u2029", "\x85", "\r\n", "data: [DONE]\n\n", '"', "\\", "\x00", "\U0001f600"]
)
_ANY_TEXT: Final = st.lists(_PIECES, max_size=4).map("".join)
_COUNTS: Final = st.none() | st.integers(0, 10**6)


@st.composite
def answers(draw: st.DrawFn, arguments: st.SearchStrategy[str] = _ANY_TEXT) -> list[Event]:
    """Generates the events of one complete answer, in every order that the grammar allows: interleaved calls, whose
    indexes are in no order, between pieces of text. `arguments` generates those of a call."""
    events: list[Event] = [ResponseStart()]
    fresh = draw(st.permutations(range(5)))
    unsent: dict[int, str] = {}
    for step in draw(st.lists(st.sampled_from("tttrsdddecn"), max_size=12)):
        match step:
            case "t":
                events.append(TextDelta(draw(_PIECES)))
            case "r":
                events.append(ReasoningDelta(draw(_PIECES)))
            case "s" if fresh:
                index = fresh.pop()
                unsent[index] = draw(arguments)
                events.append(ToolCallStart(index, f"call{index}", draw(st.sampled_from("fg"))))
            case "d" if unsent:
                index = draw(st.sampled_from(sorted(unsent)))
                end = draw(st.integers(0, len(unsent[index])))
                events += _delta(index, unsent[index][:end])
                unsent[index] = unsent[index][end:]
            case "e" if unsent:
                index, rest = unsent.popitem()
                events += [*_delta(index, rest), ToolCallEnd(index)]
            case "c":
                events.append(UsageReport(draw(_COUNTS), draw(_COUNTS), draw(_COUNTS)))
            case _:
                events.append(Notice("backend", "seen", "LATE_EVENT", "seen"))
    for index, rest in unsent.items():
        events += [*_delta(index, rest), ToolCallEnd(index)]
    events.append(Finish(draw(st.sampled_from(get_args(Reason)))))
    if draw(st.booleans()):
        events.append(UsageReport(draw(_COUNTS), draw(_COUNTS), draw(_COUNTS)))
    return events


def _delta(index: int, arguments: str) -> list[Event]:
    return [ToolCallDelta(index, arguments)] if arguments else []
