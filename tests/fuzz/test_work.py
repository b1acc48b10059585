"""Law: the work that hostile input makes grows with its size, not with its square."""

import contextlib
import gc
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import pytest

from adapters.warp.mend import mend_texts
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.dialects.openai_chat.completion import encode_completion
from gateway.dialects.openai_chat.decode import decode
from gateway.errors import BackendError, GatewayError
from gateway.events import Extension, TextDelta
from gateway.exchange import Exchange
from gateway.explain import explain
from gateway.lint import lint
from gateway.policy import Envelope, Policy
from gateway.stop import StopMatcher
from gateway.testing.strategies import TOOLS
from gateway.tools.envelope import BrokenEnvelope, open_envelope
from gateway.tools.prompted.formats import FORMATS
from gateway.types import Json
from gateway.wire.base64 import decode_base64
from gateway.wire.json_text import NotJson, decode_json
from gateway.wire.ndjson import NDJSONDecoder
from gateway.wire.sse import SSEDecoder
from tests.fuzz.test_requests import ADAPTERS

# Four times the input may cost this many times the work; its square would cost sixteen times.
TOLERATED: Final = 9
LIMIT: Final = 1 << 30


def _body(*messages: object, tools: object = None) -> bytes:
    return json.dumps({"model": "m", "messages": [*messages], **({"tools": tools} if tools else {})}).encode()


def _call(call_id: str, arguments: str = "{}") -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def _result(call_id: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


def _asked(*calls: object) -> dict[str, object]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


USER: Final = {"role": "user", "content": "Hello"}

# Requests whose size is n.
REQUESTS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "messages": lambda n: _body(*[USER] * n),
    "calls of one id": lambda n: _body(USER, _asked(*[_call("a")] * n), USER),
    "results of one id": lambda n: _body(USER, _asked(_call("a")), *[_result("a")] * n),
    "orphans": lambda n: _body(USER, *[_result(f"k{i}") for i in range(n)]),
    "calls before all results": lambda n: _body(
        USER, _asked(*[_call(f"k{i}") for i in range(n)]), *[_result(f"k{n - i}") for i in range(n)]
    ),
    "rounds of one id": lambda n: _body(USER, *[_asked(_call("a")), _result("a")] * n),
    "unanswered rounds": lambda n: _body(USER, *[_asked(_call(f"k{i}")) for i in range(n)]),
    "results before calls": lambda n: _body(
        USER, *[_result(f"k{i}") for i in range(n)], *[_asked(_call(f"k{i}")) for i in range(n)]
    ),
    "results without ids": lambda n: _body(USER, _asked(*[_call("")] * n), *[_result("")] * n),
    "tools of one name": lambda n: _body(USER, tools=[{"type": "function", "function": {"name": "f"}}] * n),
    "parts": lambda n: _body({"role": "user", "content": [{"type": "text", "text": "x"}] * n}),
    "labels": lambda n: _body({"role": "user", "content": "User: x\n\n" * n}),
    "blanks": lambda n: _body({"role": "user", "content": " \n\t" * n + "x"}),
    "quotes": lambda n: _body({"role": "user", "content": '> "\\' * n}),
    "combining marks": lambda n: _body({"role": "user", "content": "e" + "\u0301" * n}),
    "fences": lambda n: _body({"role": "user", "content": "`" * n + "\n" + "<" * n}),
    "half characters": lambda n: _body({"role": "user", "content": "\ud83d" * n}),
    "arguments": lambda n: _body(USER, _asked(_call("a", '{"a":' * n)), _result("a"), USER),
    "long ids": lambda n: _body(USER, _asked(_call("a" * n)), _result("a" * n), USER),
    "one repeated call": lambda n: _body(USER, *[_asked(_call("a", '{"n": 1}')), _result("a")] * n),
}


def _refused(error: type[Exception], work: Callable[[], object]) -> None:
    with contextlib.suppress(error):
        work()


def _sse(wire: bytes, size: int) -> None:
    decoder = SSEDecoder(LIMIT)
    for at in range(0, len(wire), size):
        decoder.feed(wire[at : at + size])
    decoder.tail()


def _lines(wire: bytes, size: int) -> None:
    decoder = NDJSONDecoder(LIMIT)
    for at in range(0, len(wire), size):
        decoder.feed(wire[at : at + size])
    decoder.tail()


def _parsed(name: str, text: str, size: int) -> None:
    parser = FORMATS[name].parser(TOOLS, "id_")
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    parser.close("length")


def _matched(stop: str, text: str) -> None:
    matcher = StopMatcher((stop,))
    for character in text:
        matcher.feed([TextDelta(character)])


def _sent(name: str, body: bytes) -> None:
    _refused(GatewayError, lambda: Exchange(ADAPTERS[name], decode(body), Policy()))


Make = Callable[[int], Callable[[], object]]


def _request(name: str, kind: str) -> Make:
    def make(n: int) -> Callable[[], object]:
        body = REQUESTS[kind](n)
        return lambda: _sent(name, body)

    return make


def _told(kind: str) -> Make:
    """All that is told of a request without sending it."""

    def tell(body: bytes) -> None:
        explain(decode(body), Policy(), ADAPTERS["warp"])
        _refused(GatewayError, lambda: lint("x", body))

    return lambda n: partial(tell, REQUESTS[kind](n))


def _marks(name: str, mark: str) -> Make:
    return lambda n: lambda: _refused(BackendError, lambda: _parsed(name, mark * n, 1))


PIECES: Final[tuple[Json, ...]] = ("a", ["a"], {"a": "a"})


def _fold(value: Json) -> Make:
    """An answer whose every chunk brings a piece of a field that nobody knows."""
    chunk = Extension("delta", {"odd": value})
    return lambda n: lambda: encode_completion([chunk] * n, id="i", created=1, model="m")


WORK: Final[dict[str, Make]] = {
    "SSE: lines without data": lambda n: lambda: _sse(b"data\n" * n, 65536),
    "SSE: one line in bytes": lambda n: lambda: _sse(b"data: " + b"x" * n, 1),
    "SSE: returns in bytes": lambda n: lambda: _sse(b"\r" * n, 1),
    "lines: one line in bytes": lambda n: lambda: _lines(b"x" * n, 1),
    "lines: blanks": lambda n: lambda: _lines(b" \r\n" * n, 65536),
    "JSON: escapes": lambda n: lambda: decode_json(b'"' + b"\\ud83d" * n + b'"', lenient=True),
    "JSON: broken bytes": lambda n: lambda: decode_json(b'"' + b"\xf0\x9f" * n + b'"', lenient=True),
    "JSON: backslashes": lambda n: lambda: _refused(NotJson, lambda: decode_json(b'"\\ud' + b"\\" * n, lenient=True)),
    "JSON: digits": lambda n: lambda: _refused(NotJson, lambda: decode_json(b"9" * n)),
    "JSON: fraction": lambda n: lambda: _refused(NotJson, lambda: decode_json(b"0." + b"9" * n)),
    "JSON: brackets": lambda n: lambda: _refused(NotJson, lambda: decode_json(b"[" * n)),
    "JSON: wide": lambda n: lambda: decode_json(b"[" + b"[]," * n + b"0]"),
    "base64: blanks": lambda n: lambda: decode_base64(b" A" * (4 * n), LIMIT),
    "protobuf: unknown fields": lambda n: lambda: mend_texts(b"\xf8\x07\x01" * n, ResponseEvent),
    "protobuf: broken texts": lambda n: lambda: mend_texts(b"\x0a\x03\x0a\x01\xff" * n, ResponseEvent),
    "envelope: fields": lambda n: (
        lambda: _refused(BrokenEnvelope, lambda: open_envelope("{" + '"a":1,' * n, Envelope(), {}, ()))
    ),
    "envelope: a long text": lambda n: (
        lambda: _refused(
            BrokenEnvelope, lambda: open_envelope(json.dumps({"name": "f", "args": '"\\' * n}), Envelope(), {}, ())
        )
    ),
    **{f"unknown fields: {value!r}": _fold(value) for value in PIECES},
    "stop: nearly": lambda n: lambda: _matched("a" * 60 + "b", "a" * n),
    **{
        f"{name}: {mark!r}": _marks(name, mark)
        for name in FORMATS
        for mark in ("<", "{", "`", "<tool_call>", "<tool_call>\n{", "Action: ", " \n", '{"name": "x"}', "<function=")
    },
    **{
        f"{name}: {kind}": _request(name, kind)
        for name in ("openai chat", "warp", "warp, structured", "text: plain")
        for kind in REQUESTS
    },
    **{f"told: {kind}": _told(kind) for kind in ("messages", "orphans", "rounds of one id", "results before calls")},
}


def _seconds(work: Callable[[], object]) -> float:
    # The collector looks at all that lives in the process, which is not the work's fault.
    gc.disable()
    try:
        begun = time.thread_time()
        work()
        return time.thread_time() - begun
    finally:
        gc.enable()


def _growth(make: Make) -> float:
    """How many times the work grows when the input grows four times, at a size at which it can be measured."""
    size = 64
    while _seconds(make(size)) < 0.003:
        if size == 1 << 20:
            return 1
        size *= 2
    small, large = make(size), make(size * 4)
    return _seconds(large) / min(_seconds(small) for _ in range(2))


@pytest.mark.parametrize("name", WORK)
def test_work_grows_with_the_size_of_the_input(name: str) -> None:
    # The machine may be busy with something else at one of the moments.
    assert any(_growth(WORK[name]) < TOLERATED for _ in range(3))


def test_a_square_would_be_seen() -> None:
    assert _growth(lambda n: lambda: sum(range(n * n // 8))) > TOLERATED
