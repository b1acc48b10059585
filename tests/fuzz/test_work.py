"""Law: the work that hostile input makes grows with its size, not with its square.

`make bounds` runs the same cases at 1, 4 and 16 MB and prints what they take.
"""

import contextlib
import json
from collections.abc import Callable, Mapping, Sized
from functools import partial
from typing import Final

import msgspec
import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.completion import encode_completion
from adapters.openai_chat.client.decode import decode
from adapters.openai_chat.client.stream import ChatStreamEncoder
from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.text.backend import TextAdapter, TextOptions
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.adapter import Adapter
from gateway.capabilities.request_fields import LONGEST_SEQUENCE
from gateway.core.answer import read_answer
from gateway.core.backend_status import public_text
from gateway.core.conversation import Conversation, Json, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.errors import BackendError, GatewayError
from gateway.core.events import Event, PassthroughFields, TextDelta
from gateway.core.policy import FlattenOptions, Labels, LoopGuard, Policy, RecentToolResults, StyleName, WrapperTool
from gateway.core.secrets import redact_keys, without_secrets
from gateway.diagnostics.explain import explain
from gateway.diagnostics.lint import lint
from gateway.exchange import Exchange
from gateway.framing.base64 import decode_base64
from gateway.framing.json_text import NotJson, decode_json
from gateway.framing.ndjson import NDJSONDecoder
from gateway.framing.sse import SSEDecoder
from gateway.history.transcript.escape import guarded
from gateway.history.transcript.styles import STYLES
from gateway.protobuf.arguments import encode_arguments
from gateway.protobuf.tool_schema import Schema, Steps
from gateway.protobuf.utf8_repair import repair_texts
from gateway.providers.registry import PROFILES
from gateway.recording.redact.wire import Redactor
from gateway.recording.redact.words import Words
from gateway.response.stop_sequences import StopMatcher
from gateway.server.upstream.credentials import CUT, redact_secrets
from gateway.settings import check_options
from gateway.testing.dialect_case import GREETING
from gateway.tool_calls.parsers.formats import FORMATS
from gateway.tool_calls.wrapper_tool import BrokenWrapper, unwrap_arguments
from tests.adapters.proto.backend.mappings import PARTS
from tests.adapters.warp.backend.script import struct
from tests.dialects.cases import CASES
from tests.fuzz.counted import count_work, counted_normalisation, growth
from tests.fuzz.hostile_answers import CALLS, MARKS, MESSAGES, NATIVE, WARP
from tests.fuzz.hostile_requests import REQUESTS, dense, union
from tests.tiers import sample

# Four times the input may cost this many times the work; its square would cost sixteen times.
TOLERATED: Final = 6
GROUP: Final = "one group of calls and results"
# Each call of a group makes much work of its own, so that a square is a small part of it at a size that can be counted.
TOLERATED_OF_A_GROUP: Final = 4.3
# A case is counted from the first size on at which it makes so many steps, or the last but one.
STEPS: Final = 150
LEAST: Final = 16
MOST: Final = 4096
LIMIT: Final = 1 << 30


class Case(msgspec.Struct, frozen=True):
    """Input of size n, and what is done with it."""

    make: Callable[[int], Sized]
    do: Callable[..., object]


def _refused(error: type[Exception], work: Callable[[], object]) -> None:
    with contextlib.suppress(error):
        work()


def _sse(size: int, wire: bytes) -> None:
    decoder = SSEDecoder(LIMIT)
    for at in range(0, len(wire), size):
        decoder.feed(wire[at : at + size])
    decoder.tail()


def _lines(size: int, wire: bytes) -> None:
    decoder = NDJSONDecoder(LIMIT)
    for at in range(0, len(wire), size):
        decoder.feed(wire[at : at + size])
    decoder.tail()


def _json(lenient: bool, text: bytes) -> None:
    _refused(NotJson, lambda: decode_json(text, lenient=lenient))


_TOOLS: Final = (ToolSpec("f", parameters=union(400)),)


def _parsed(name: str, size: int, text: str) -> None:
    parser = FORMATS[name].parser(_TOOLS, "id_")
    with contextlib.suppress(BackendError):
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.close("length")


TYPED: Final = next(mark for mark in MARKS if "<parameter=a>" in mark)


def _typed(text: str) -> None:
    tool = ToolSpec("f", parameters=union(len(text) // len(TYPED)))
    parser = FORMATS["qwen_xml"].parser((tool,), "id_")
    parser.feed(text)
    parser.close("stop")


def _matched(stop: str, text: str) -> None:
    matcher = StopMatcher((stop,))
    for character in text:
        matcher.feed([TextDelta(character)])


def _opened(text: str) -> None:
    _refused(BrokenWrapper, lambda: unwrap_arguments(text, WrapperTool(), {}, ()))


_FREE: Final = Policy(max_tool_results=None, max_history_messages=None, images="placeholder")
_RECALLS: Final = RecentToolResults(enabled=True, redact=("a+b",))
_CUTS: Final = Policy(
    max_tool_results=5,
    max_history_messages=20,
    max_tool_result_chars=100,
    recent_tool_results=_RECALLS,
    loop_guard=LoopGuard(repeats=2, action="nudge"),
)
_MESSAGES: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), LIMIT)
_NATIVE: Final = OpenAIChatAdapter(OpenAIChatOptions(), LIMIT)
_WARP: Final = WarpAdapter(WarpOptions(), LIMIT)
_STREAMS: Final = WarpAdapter(WarpOptions(rollback="stream", strict_frames=False), LIMIT)
_TEXT: Final = TextAdapter(TextOptions(wire="plain"), LIMIT)


def _fitted(profile: str) -> Policy:
    return msgspec.structs.replace(_FREE, profile=PROFILES[profile])


def _styled(style: StyleName) -> Policy:
    return msgspec.structs.replace(_FREE, flatten=FlattenOptions(style))


# A profile that joins neighbouring messages and renames identifiers.
MERGES: Final = "mistral"
WAYS: Final[Mapping[str, tuple[Adapter, Policy]]] = {
    "messages": (_MESSAGES, _FREE),
    "native": (_NATIVE, _FREE),
    "native, cut": (_NATIVE, _CUTS),
    "native, not repaired": (_NATIVE, Policy(repair="off")),
    f"native, {MERGES}": (_NATIVE, _fitted(MERGES)),
    "warp": (_WARP, _FREE),
    "warp, structured": (WarpAdapter(WarpOptions(encoding="structured"), LIMIT), _FREE),
    **{f"text, {style}": (_TEXT, _styled(style)) for style in STYLES if style != FlattenOptions().style},
    "text, cut": (TextAdapter(TextOptions(wire="llama_cpp", tool_format="react"), LIMIT), _CUTS),
}


def _sent(way: str, body: bytes) -> None:
    adapter, policy = WAYS[way]
    _refused(GatewayError, lambda: Exchange(adapter, decode(body), policy))


# A prompt has no calls.
CLIENTS: Final = {str(case): case for case in CASES if str(case) != "openai_completions"}
PROTOBUF: Final = ProtoAdapter(check_options(PARTS, ProtoOptions, "options"), LIMIT)
GROUP_WAYS: Final[Mapping[str, tuple[Adapter, Policy]]] = {
    **{way: WAYS[way] for way in ("messages", "native", "warp", "warp, structured", "text, cut")},
    "protobuf": (PROTOBUF, _FREE),
}
# The way to the backend does not depend on the dialect.
GROUPED: Final = [*((name, "warp") for name in CLIENTS), *(("openai_chat", way) for way in GROUP_WAYS if way != "warp")]


def _group(dialect: str, n: int) -> bytes:
    """One group of n calls and their results, as a client of the dialect writes it."""
    ids = [f"call_{at}" for at in range(n)]
    calling = Turn("assistant", tuple(ToolCall(call_id, "f", "{}") for call_id in ids))
    results = [Turn("tool", (ToolResult(call_id, (Text("x"),)),), name="f") for call_id in ids]
    return CLIENTS[dialect].write(Conversation((Turn("user", (Text("Hello"),)), calling, *results), model="m"))


def _grouped(dialect: str, way: str, body: bytes) -> None:
    """Raises GatewayError, because a refused group would make no work."""
    adapter, policy = GROUP_WAYS[way]
    Exchange(adapter, CLIENTS[dialect].decode(body, GREETING).conversation, policy)


def _diagnosed(body: bytes) -> None:
    """Runs every report about a request that is not sent."""
    _refused(GatewayError, lambda: explain(decode(body), Policy(), _WARP))
    _refused(GatewayError, lambda: lint("x", body))


_TOOL: Final[Json] = {"type": "function", "function": {"name": "f", "parameters": union(40)}}
_ASKED: Final = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "tools": [_TOOL], "stop": ["a" * 60 + "b"]}
).encode()


def _answered(adapter: Adapter, size: int, wire: bytes) -> None:
    """A whole answer, in pieces, to a client that streams and to one that does not."""
    exchange, encoder = Exchange(adapter, decode(_ASKED), Policy()), ChatStreamEncoder("id", 1, "m")
    events: list[Event] = []
    with contextlib.suppress(BackendError):
        for at in range(0, len(wire), size):
            read = exchange.feed(wire[at : at + size])
            encoder.feed(read)
            events += read
        events += exchange.close()
        encode_completion(read_answer(events), id="i", created=1, model="m")


def _written(schema: Json, values: list[Json]) -> None:
    assert isinstance(schema, dict)
    encode_arguments(struct({"l": values}), Schema(schema, Steps()))


# Keys, and what nearly is one: a run of its characters, its beginnings without an end, with blanks and in quotes.
NEARLY_KEYS: Final = ("sk-", "a", "-", "Bearer ", "key=", 'api_key": "', "sk-abcdefghijkl ", "eyJ.", "://u:p@", " ")
HELD_SECRET: Final = "a" * 400 + "b"


def _redacted(text: str) -> None:
    """Runs the redaction of a backend's text, of a debug body and of a log line."""
    redact_keys(text)
    public_text(text)
    redact_secrets(text, HELD_SECRET, "a" * 8)
    redact_secrets(f"{text}{CUT}", HELD_SECRET)
    without_secrets(text)


def _recorded(text: str) -> None:
    """Redacts a body of a recording."""
    Redactor(Words("shape", b"seed")).data(text.encode())


BODIES: Final[Mapping[str, Callable[[int], str]]] = {
    "brackets": lambda n: "[" * n,
    "numbers": lambda n: '{"input": {"args": [' + "12," * n + "0]}}",
    "events": lambda n: 'data: {"index": 0, "delta": "a"}\n\n' * n,
    "events of other fields": lambda n: "".join(f'data: {{"f{at}": "a{at}"}}\n\n' for at in range(n)),
    "strings": lambda n: "[" + '"a b",' * n + '""]',
    "escapes": lambda n: '"' + "\\n\\u00e9" * n + '"',
    "words": lambda n: "".join(f"word{at} " for at in range(n)),
    "lines": lambda n: "a\n" * n,
}


PIECES: Final[tuple[Json, ...]] = ("a", ["a"], {"a": "a"})


def _fold(value: Json, pieces: list[None]) -> None:
    """Folds an answer in which every chunk contains a piece of an unknown field."""
    chunk = PassthroughFields("delta", {"odd": value})
    encode_completion(read_answer([chunk] * len(pieces)), id="i", created=1, model="m")


WORK: Final[dict[str, Case]] = {
    "SSE: lines without data": Case(lambda n: b"data\n" * n, partial(_sse, 65536)),
    "SSE: one line in bytes": Case(lambda n: b"data: " + b"x" * n, partial(_sse, 1)),
    "SSE: returns in bytes": Case(lambda n: b"\r" * n, partial(_sse, 1)),
    "lines: one line in bytes": Case(lambda n: b"x" * n, partial(_lines, 1)),
    "lines: blanks": Case(lambda n: b" \r\n" * n, partial(_lines, 65536)),
    "JSON: escapes": Case(lambda n: b'"' + b"\\ud83d" * n + b'"', partial(_json, True)),
    "JSON: broken bytes": Case(lambda n: b'"' + b"\xf0\x9f" * n + b'"', partial(_json, True)),
    "JSON: backslashes": Case(lambda n: b'"\\ud' + b"\\" * n, partial(_json, True)),
    "JSON: digits": Case(lambda n: b"9" * n, partial(_json, False)),
    "JSON: fraction": Case(lambda n: b"0." + b"9" * n, partial(_json, False)),
    "JSON: brackets": Case(lambda n: b"[" * n, partial(_json, False)),
    "JSON: wide": Case(lambda n: b"[" + b"[]," * n + b"0]", partial(_json, False)),
    "base64: blanks": Case(lambda n: b" A" * (4 * n), lambda text: decode_base64(text, LIMIT)),
    "protobuf: unknown fields": Case(lambda n: b"\xf8\x07\x01" * n, lambda data: repair_texts(data, ResponseEvent)),
    "protobuf: broken texts": Case(
        lambda n: b"\x0a\x03\x0a\x01\xff" * n, lambda data: repair_texts(data, ResponseEvent)
    ),
    **{f"redaction: {piece!r}": Case(partial(str.__mul__, piece), _redacted) for piece in NEARLY_KEYS},
    **{f"recording: {kind}": Case(make, _recorded) for kind, make in BODIES.items()},
    "envelope: fields": Case(lambda n: "{" + '"a":1,' * n, _opened),
    "envelope: a long text": Case(lambda n: json.dumps({"name": "f", "args": '"\\' * n}), _opened),
    "arguments: dense references": Case(lambda n: [1] * n, partial(_written, dense(40))),
    "arguments: a schema of the same size": Case(
        lambda n: [1] * n, lambda values: _written(dense(len(values)), values)
    ),
    **{f"unknown fields: {value!r}": Case(lambda n: [None] * n, partial(_fold, value)) for value in PIECES},
    "stop: nearly": Case(lambda n: "a" * n, partial(_matched, "a" * 60 + "b")),
    "stop: the longest, nearly": Case(lambda n: "a" * n, partial(_matched, "a" * (LONGEST_SEQUENCE - 1) + "b")),
    **{
        f"{name}: {mark!r}": Case(partial(str.__mul__, mark), partial(_parsed, name, 1))
        for name in FORMATS
        for mark in MARKS
    },
    **{f"{name}: {kind}": Case(CALLS[kind], partial(_parsed, name, 7)) for name in FORMATS for kind in CALLS},
    "many calls of a tool with many types": Case(lambda n: TYPED * n, _typed),
    **{f"{way}: {kind}": Case(REQUESTS[kind], partial(_sent, way)) for way in WAYS for kind in REQUESTS},
    **{
        f"{dialect} to {way}: {GROUP}": Case(partial(_group, dialect), partial(_grouped, dialect, way))
        for dialect, way in GROUPED
    },
    **{f"explain and lint: {kind}": Case(REQUESTS[kind], _diagnosed) for kind in REQUESTS},
    **{f"messages answer: {kind}": Case(MESSAGES[kind], partial(_answered, _MESSAGES, 4096)) for kind in MESSAGES},
    **{f"native answer: {kind}": Case(NATIVE[kind], partial(_answered, _NATIVE, 4096)) for kind in NATIVE},
    **{f"warp answer: {kind}": Case(WARP[kind], partial(_answered, _WARP, 4096)) for kind in WARP},
    **{f"warp answer, at once: {kind}": Case(WARP[kind], partial(_answered, _STREAMS, 4096)) for kind in WARP},
    **{
        f"text answer: {mark!r}": Case(lambda n, mark=mark: (mark * n).encode(), partial(_answered, _TEXT, 1))  # type: ignore[misc] # a default binds the mark
        for mark in MARKS
    },
}


# The others are like these but for what stands in front of or behind the passes; `make bounds` runs all.
_SELDOM: Final = (
    *(f"{way}: " for way in WAYS if way not in ("messages", "warp", f"native, {MERGES}")),
    *(f"{name}: " for name in FORMATS if name not in ("hermes_json", "qwen_xml")),
    *("explain and lint: ", "warp answer, at once: "),
)
QUICK: Final = [name for name in WORK if not name.startswith(_SELDOM)]


# Where each step is much, the square of something small is seen late; and of a short text all is normalised.
_LARGE: Final[Mapping[str, int]] = {
    "messages": 80,
    "messages with fields": 80,
    "transactions in each other": 80,
    "messages in each transaction": 80,
    "calls of one id": 80,
    "calls whose derived ids are taken": 80,
    "fields of a call that waits": 80,
    "many calls of a tool with many types": 80,
    GROUP: 160,
    "one line in a bracket": 1024,
    "combining marks": 1024,
    "lines of combining marks": 1024,
    "arguments of marks": 1024,
    # Many characters each.
    **{repr(mark): 4 for mark in MARKS if len(mark) > 20},
}


def _growth(case: Case, least: int = LEAST) -> float:
    """How many times the work grows when the input grows four times, at a size at which it can be measured."""
    case.do(case.make(1))  # what is kept of the first time, patterns for instance
    size, before = least, count_work(partial(case.do, case.make(least)))
    while True:
        size *= 4
        after = count_work(partial(case.do, case.make(size)))
        if before.steps >= STEPS or size >= MOST:
            return growth(before, after)
        before = after


@sample(lambda name: name.partition(": ")[0].partition(" to ")[0])
@pytest.mark.parametrize("name", QUICK)
def test_work_grows_with_the_size_of_the_input(name: str) -> None:
    kind = name.rpartition(": ")[2]
    assert _growth(WORK[name], _LARGE.get(kind, LEAST)) < (TOLERATED_OF_A_GROUP if kind == GROUP else TOLERATED)


def _grown(pieces: list[str]) -> None:
    text, turns = _Kept(), tuple[str, ...]()
    for piece in pieces:
        text.text += piece
        turns = (*turns, piece)
        len(turns)


class _Kept:
    text = ""


SQUARES: Final[dict[str, Case]] = {
    "calls": Case(lambda n: [0] * n, lambda numbers: [abs(a) for a in numbers for _ in numbers]),
    "copies": Case(lambda n: ["piece"] * n, _grown),
}


@pytest.mark.parametrize("name", SQUARES)
def test_a_square_would_be_seen(name: str) -> None:
    assert _growth(SQUARES[name], LEAST) > TOLERATED


def test_the_square_of_a_run_of_marks_would_be_seen() -> None:
    with counted_normalisation() as counted:
        counted.normalize("NFKC", "a" + "\u0301" * 1000)
        assert counted.steps > 1000 * 1000


@pytest.mark.parametrize("body", ["a" + "\u0301\u0316" * 80_000, "user (" + "\u0301\u0316" * 80_000, "\ufdfa" * 80_000])
def test_no_long_text_is_normalised_at_once(body: str) -> None:
    with counted_normalisation() as counted:
        guarded(body, Labels())
    assert 0 < counted.longest < 1000
    assert counted.steps < 200 * len(body)
