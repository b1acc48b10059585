"""Builds single requests and responses with maximum cost, as bytes."""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gateway.core.conversation import Json
from gateway.testing.faults import FAULTS, coded
from gateway.testing.faulty import END, Connection, Script, chunk, head
from gateway.testing.gateway import hello
from tests.promises.wires import Wire

MEGABYTE: Final = 2**20


def _chat(**fields: Json) -> bytes:
    return json.dumps({**hello(), **fields}).encode()


def _said(text: str) -> bytes:
    return _chat(messages=[{"role": "user", "content": text}])


def _call(number: int) -> Json:
    return {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def _rounds(many: int) -> list[Json]:
    rounds: list[Json] = [{"role": "user", "content": "go"}]
    for number in range(many):
        rounds.append({"role": "assistant", "content": None, "tool_calls": [_call(number)]})
        rounds.append({"role": "tool", "tool_call_id": f"c{number}", "content": "done"})
    return rounds


def _tool(number: int) -> Json:
    return {"type": "function", "function": {"name": f"f{number}", "parameters": {"type": "object"}}}


REQUESTS: Final[Mapping[str, Callable[[], bytes]]] = {
    "one very long text": lambda: _said("a" * 4 * MEGABYTE),
    "nothing but newlines": lambda: _said("\n" * 4 * MEGABYTE),
    "labels of turns": lambda: _said("User: x\nAssistant: y\n" * 100_000),
    "combining marks": lambda: _said("a" + "\u0301\u0316" * 500_000),
    "ligatures in one line": lambda: _said("\ufdfa" * MEGABYTE),
    "escapes": lambda: b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % (rb"\u0000" * 500_000),
    "many messages": lambda: _chat(messages=[{"role": "user", "content": "x"}] * 20_000),
    "many rounds": lambda: _chat(messages=_rounds(2_000)),
    "many calls without a result": lambda: _chat(
        messages=[
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [_call(number) for number in range(8_000)]},
            {"role": "user", "content": "and?"},
        ]
    ),
    "many results without a call": lambda: _chat(
        messages=[{"role": "tool", "tool_call_id": f"x{number}", "content": "y"} for number in range(8_000)]
    ),
    "one id for all": lambda: _chat(
        messages=[{"role": "user", "content": "go"}, *(_rounds(1)[1:] * 5_000)],
    ),
    "many tools": lambda: _chat(tools=[_tool(number) for number in range(8_000)]),
    "deep JSON": lambda: b'{"model":"m","messages":' + b"[" * 500_000,
    "digits": lambda: b'{"model":"m","seed":%s}' % (b"9" * MEGABYTE),
    "many keys": lambda: _chat(metadata={f"k{number}": number for number in range(100_000)}),
    "half a body": lambda: _said("a" * 4 * MEGABYTE)[:-2],
}


_DEEP: Final = b"[" * 1_000_000
ANSWERS: Final[Mapping[str, Callable[[Wire], Iterable[bytes]]]] = {
    "one long event": lambda wire: (wire.spoken.begin, wire.said(b"a" * 2 * MEGABYTE), wire.spoken.end),
    "newlines": lambda wire: (wire.spoken.begin, wire.said(rb"\n" * MEGABYTE), wire.spoken.end),
    "blanks": lambda wire: (wire.spoken.begin, *[wire.said(b" " * 1000)] * 500, wire.spoken.end),
    "many small events": lambda wire: (wire.spoken.begin, *[wire.spoken.text * 500] * 40, wire.spoken.end),
    "a deep event": lambda wire: (wire.spoken.begin, wire.spoken.opening + _DEEP + b"\n\n", wire.spoken.end),
    "many empty lines": lambda wire: (wire.spoken.begin, *[b"\n" * 65536] * 10, wire.spoken.end),
    "many comments": lambda wire: (wire.spoken.begin, *[wire.spoken.silence * 5000] * 20, wire.spoken.end),
    "lines without end": lambda wire: (wire.spoken.begin, *[b"data: x\n" * 8000] * 20, wire.spoken.end),
    "raw bytes": lambda wire: (wire.spoken.begin, *[b"\xff\x00" * 32768] * 10),
    "numbers": lambda wire: (wire.spoken.begin, wire.spoken.opening + b"9" * MEGABYTE + b"\n\n", wire.spoken.end),
}
# The faults that go on for ever, or pour something out.
POURED: Final = ("an event without end", "an answer without end", "gzip", "a flood of headers", "a header without end")


def answering(wire: Wire, pieces: Callable[[Wire], Iterable[bytes]]) -> Script:
    """A backend that answers with these pieces."""

    async def script(connection: Connection) -> None:
        await connection.send(head(wire.spoken.media_type))
        for piece in pieces(wire):
            await connection.send(chunk(piece))
        await connection.send(END)

    return script


def packing(wire: Wire) -> Script:
    """A backend whose answer is compressed as well as it may be, whole events and all in one read."""
    text = wire.spoken.text * (5 * MEGABYTE // len(wire.spoken.text) // 2)
    packed = zlib.compress(wire.spoken.begin + text + wire.spoken.end, 9, wbits=31)

    async def script(connection: Connection) -> None:
        await connection.send(coded(wire.spoken.media_type, "gzip", packed))

    return script


def scripts(wire: Wire) -> Mapping[str, Script]:
    """All hostile answers on a wire."""
    told = {name: answering(wire, pieces) for name, pieces in ANSWERS.items()}
    told["megabytes of events in a few kilobytes"] = packing(wire)
    return told | {name: FAULTS[name].script(wire.spoken) for name in POURED}
