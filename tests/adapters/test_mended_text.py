"""Half a character in the JSON of a response, on every wire: joined with its other half, or told."""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from adapters.anthropic_messages.backend.decoder import MessagesDecoder
from adapters.gemini.backend.decoder import GeminiDecoder
from adapters.openai_chat.backend.decoder import ChatDecoder
from adapters.openai_responses.backend.decoder import ResponsesDecoder
from adapters.openai_responses.backend.event_reader import EventReader
from adapters.openai_responses.function_names import ToolNames
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from gateway.adapter import Decoder
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.response.passthrough import Passthrough
from gateway.testing.events import fold
from gateway.testing.replay import cuttings, replay
from tests.adapters.anthropic_messages.backend import wires as messages
from tests.adapters.gemini.backend import wires as gemini
from tests.adapters.openai_chat.backend import wires as chat
from tests.adapters.openai_responses.backend import wires as responses
from tests.adapters.text.backend import answers

MAX_EVENT: Final = 1 << 16
# A character of four bytes, cut where servers cut it.
HALVES: Final = {"escapes": (b"\\ud83d", b"\\ude00"), "bytes": (b"\xf0\x9f", b"\x98\x80")}


def _text(wire: str) -> Callable[[], Decoder]:
    adapter = TextAdapter(TextOptions(wire=wire), MAX_EVENT)
    return lambda: adapter.decoder(Conversation((Turn("user", (Text("hi"),)),)))


def _responses() -> Decoder:
    return ResponsesDecoder(EventReader(1, ToolNames, Passthrough(passes=True)), MAX_EVENT)


def _chat() -> Decoder:
    return ChatDecoder(MAX_EVENT, 1)


# How the decoder is made, and a stream whose text, reasoning or arguments are `{"a":"b(1)` and `(2)c"}`.
WIRES: Final[dict[str, tuple[Callable[[], Decoder], bytes]]] = {
    "chat text": (
        _chat,
        chat.sse(chat.chunk({"content": "b(1)"}), chat.chunk({"content": "(2)c"}), chat.chunk(finish="stop")),
    ),
    "chat reasoning": (
        _chat,
        chat.sse(chat.chunk({"reasoning": "b(1)"}), chat.chunk({"reasoning": "(2)c"}), chat.chunk(finish="stop")),
    ),
    "chat arguments": (
        _chat,
        chat.sse(
            chat.chunk(chat.call(0, "k", "f", "b(1)")),
            chat.chunk(chat.call(0, arguments="(2)c")),
            chat.chunk(finish="tool_calls"),
        ),
    ),
    "messages text": (
        lambda: MessagesDecoder(MAX_EVENT),
        messages.sse(
            messages.start(),
            *messages.block(0, {"type": "text", "text": ""}, *messages.text("b(1)", "(2)c")),
            *messages.end(),
        ),
    ),
    "gemini text": (
        lambda: GeminiDecoder(MAX_EVENT, 1, passes=False),
        gemini.sse(gemini.chunk(gemini.text("b(1)")), gemini.chunk(gemini.text("(2)c"), finish="STOP")),
    ),
    "responses text": (
        _responses,
        responses.streamed(*responses.text_events(0, "b(1)", "(2)c")),
    ),
    "messages thinking": (
        lambda: MessagesDecoder(MAX_EVENT),
        messages.sse(
            messages.start(),
            *messages.block(0, messages.THINKING, *messages.thinking("b(1)", "(2)c")),
            *messages.end(),
        ),
    ),
    "messages arguments": (
        lambda: MessagesDecoder(MAX_EVENT),
        messages.sse(
            messages.start(),
            *messages.block(0, messages.call("k", "f"), *messages.arguments("b(1)", "(2)c")),
            *messages.end("tool_use"),
        ),
    ),
    "gemini thoughts": (
        lambda: GeminiDecoder(MAX_EVENT, 1, passes=False),
        gemini.sse(
            gemini.chunk(gemini.text("b(1)", thought=True)),
            gemini.chunk(gemini.text("(2)c", thought=True), finish="STOP"),
        ),
    ),
    "responses arguments": (_responses, responses.streamed(*responses.call_events(0, "b(1)", "(2)c"))),
    "llama_cpp text": (_text("llama_cpp"), answers.llama(["b(1)", "(2)c"])),
    "ollama text": (_text("ollama"), answers.ollama(["b(1)", "(2)c"])),
    "tgi text": (_text("tgi"), answers.tgi(["b(1)", "(2)c"])),
    "completions text": (_text("completions"), answers.completions(["b(1)", "(2)c"])),
}


def _said(events: list[Event]) -> str:
    answer = fold(events)
    return answer.text + answer.reasoning + "".join(call.arguments for call in answer.calls)


def _told(events: list[Event]) -> list[str]:
    return [event.rule for event in events if isinstance(event, Notice) and event.rule == "TEXT_MENDED"]


@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("name", WIRES)
def test_a_character_in_two_pieces_is_one(name: str, halves: str) -> None:
    build, wire = WIRES[name]
    first, second = HALVES[halves]
    # The whole text, which some wires repeat, has the character itself.
    wire = wire.replace(b"(1)(2)", first + second).replace(b"(1)", first).replace(b"(2)", second)
    for cutting in cuttings(wire):
        events = replay(build(), cutting)
        assert (_said(events), _told(events)) == ("b\U0001f600c", [])


# The text comes in these pieces; those that are alike are read on the fast path of a wire.
_PIECES: Final = ("b", "b", "(1)", "x", "(2)", "c")
PARTED: Final[dict[str, tuple[Callable[[], Decoder], bytes]]] = {
    "chat": (_chat, chat.sse(*[chat.chunk({"content": piece}) for piece in _PIECES], chat.chunk(finish="stop"))),
    "messages": (
        lambda: MessagesDecoder(MAX_EVENT),
        messages.sse(
            messages.start(),
            *messages.block(0, {"type": "text", "text": ""}, *messages.text(*_PIECES)),
            *messages.end(),
        ),
    ),
    "gemini": (
        lambda: GeminiDecoder(MAX_EVENT, 1, passes=False),
        gemini.sse(
            *[gemini.chunk(gemini.text(piece)) for piece in _PIECES], gemini.chunk(gemini.text(""), finish="STOP")
        ),
    ),
    "responses": (_responses, responses.streamed(*responses.text_events(0, *_PIECES))),
    "llama_cpp": (_text("llama_cpp"), answers.llama(_PIECES)),
    "ollama": (_text("ollama"), answers.ollama(_PIECES)),
    "tgi": (_text("tgi"), answers.tgi(_PIECES)),
    "completions": (_text("completions"), answers.completions(_PIECES)),
}


@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("name", PARTED)
def test_text_between_two_halves_stays_between_them(name: str, halves: str) -> None:
    build, wire = PARTED[name]
    first, second = HALVES[halves]
    wire = wire.replace(b"(1)x(2)", first + b"x" + second).replace(b"(1)", first).replace(b"(2)", second)
    for cutting in cuttings(wire):
        events = replay(build(), cutting)
        said = _said(events)
        assert said.replace("\ufffd", "") == "bbxc" and said.index("x") < said.index("\ufffd"), ascii(said)
        assert _told(events) == ["TEXT_MENDED"]


@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("name", WIRES)
def test_half_a_character_alone_is_told(name: str, halves: str) -> None:
    build, wire = WIRES[name]
    for half, place in zip(HALVES[halves], (b"(1)", b"(2)"), strict=True):
        lone = wire.replace(b"(1)(2)", b"").replace(place, half).replace(b"(1)", b"").replace(b"(2)", b"")
        events = replay(build(), [lone])
        assert _told(events) == ["TEXT_MENDED"]
        assert _said(events).replace("\ufffd", "") == "bc"


def test_a_backslash_before_the_letters_of_an_escape_is_text() -> None:
    wire = chat.sse(chat.chunk({"content": "a\\ud83d"}), chat.chunk({"content": "\\ude00b\xff"}, "stop"))
    events = replay(_chat(), [wire.replace(b"\\u00ff", b"\xff")])
    assert (_said(events), _told(events)) == ("a\\ud83d\\ude00b\ufffd", ["TEXT_MENDED"])


def test_half_a_character_at_the_end_is_told() -> None:
    wire = chat.sse(chat.chunk({"content": "a(1)"}, "stop")).replace(b"(1)", b"\\ud83d")
    events = replay(_chat(), [wire])
    assert (_said(events), _told(events)) == ("a", ["TEXT_MENDED"])


@pytest.mark.parametrize("half", [b"\\ud83d", b"\xf0\x9f"])
def test_half_a_character_of_a_whole_answer_is_told(half: bytes) -> None:
    candidate = {"content": {"parts": [{"text": "a(1)"}]}, "finishReason": "STOP"}
    for build, body in (
        (_chat, chat.completion({"content": "a(1)"})),
        (lambda: MessagesDecoder(MAX_EVENT), messages.message({"type": "text", "text": "a(1)"})),
        (lambda: GeminiDecoder(MAX_EVENT, 1, passes=False), msgspec.json.encode({"candidates": [candidate]})),
    ):
        events = replay(build(), [body.replace(b"(1)", half)])
        assert (_said(events), _told(events)) == ("a\ufffd", ["TEXT_MENDED"])
