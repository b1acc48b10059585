"""Builds the requests of coding agents: a system prompt, tools, and a history of calls, results and pictures that grows
by one call and its result with each turn.

Every message but the system prompt holds the mark of its conversation, so that two conversations share no more than
real ones do: the system prompt and the tools.
"""

import base64
import json
import random
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count, islice
from typing import Any, Final, TypeAlias

import msgspec

Message: TypeAlias = dict[str, Any]

_WORDS: Final = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "kappa", "lambda", "omicron", "sigma", "tau")
_MARK: Final = "@MARK@"
_PICTURE_SIDE: Final = 40
# Each so many rounds of calls: a picture behind the results; three calls at once.
_PICTURE_EACH: Final = 8
_PARALLEL_EACH: Final = 4
_SYSTEM, _QUESTION, _RESULT, _PARALLEL_RESULT = 8000, 500, 3000, 1000
# More than any measurement asks for of one conversation.
TURNS: Final = 8


class Size(msgspec.Struct, frozen=True):
    """The size of a first request in bytes, and how many tools it offers."""

    size: int
    tools: int


SIZES: Final[Mapping[str, Size]] = {
    "small": Size(0, 0),
    "60": Size(60_000, 15),
    "500": Size(500_000, 60),
    "2000": Size(2_000_000, 60),
}


class AgentBody(msgspec.Struct, frozen=True):
    """The requests of conversations of one size. `turns` are the bodies of the first request and of those behind it,
    each cut where the mark of the conversation stands."""

    turns: tuple[tuple[bytes, ...], ...]
    messages: int
    stream: bool

    def request(self, conversation: int, turn: int) -> bytes:
        """Returns the body of a turn (0 is the first) of the conversation with this number."""
        return (b"%06d" % conversation).join(self.turns[turn])


@cache
def agent_body(size: str, model: str, *, stream: bool) -> AgentBody:
    """Returns the requests of this size of `SIZES`; the same arguments give the same bytes in every process."""
    wanted = SIZES[size]
    chance = random.Random(1)
    if wanted.size == 0:
        question = {"role": "user", "content": f"{_MARK} Say something about gateways, please."}
        return _cut([[question]] * (TURNS + 1), (), model, stream)
    tools = [_tool(chance, number) for number in range(wanted.tools)]
    messages: list[Message] = [
        {"role": "system", "content": _text(chance, _SYSTEM)},
        {"role": "user", "content": f"{_MARK} {_text(chance, _QUESTION)}"},
    ]
    rounds = (_round(chance, number) for number in count(1))
    left = wanted.size - len(json.dumps(tools)) - len(json.dumps(messages))
    while left > 0:
        added = next(rounds)
        messages += added
        left -= len(json.dumps(added))
    histories = [messages]
    for number in islice(count(1), TURNS):
        histories.append([*histories[-1], *_calls(chance, f"{_MARK}_next_{number}", 1, _RESULT)])
    return _cut(histories, tools, model, stream)


def _cut(histories: Sequence[list[Message]], tools: Sequence[Message], model: str, stream: bool) -> AgentBody:
    offered = {"tools": tools, "tool_choice": "auto"} if tools else {}
    bodies = (
        msgspec.json.encode({"model": model, "stream": stream, "messages": history, **offered}) for history in histories
    )
    return AgentBody(tuple(tuple(body.split(_MARK.encode())) for body in bodies), len(histories[0]), stream)


def _text(chance: random.Random, size: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(size // 6))


def _tool(chance: random.Random, number: int) -> Message:
    properties = {f"p{at}": {"type": "string", "description": _text(chance, 60)} for at in range(5)}
    parameters = {"type": "object", "properties": properties, "required": ["p0"]}
    function = {"name": f"tool_{number}", "description": _text(chance, 400), "parameters": parameters}
    return {"type": "function", "function": function}


def _round(chance: random.Random, number: int) -> list[Message]:
    parallel = number % _PARALLEL_EACH == 0
    calls = _calls(chance, f"{_MARK}_{number}", 3 if parallel else 1, _PARALLEL_RESULT if parallel else _RESULT)
    if number % _PICTURE_EACH:
        return calls
    picture = base64.b64encode(_png(chance)).decode()
    text = {"type": "text", "text": f"{_MARK} {_text(chance, 60)}"}
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    return [*calls, {"role": "user", "content": [text, image]}]


def _calls(chance: random.Random, name: str, number: int, size: int) -> list[Message]:
    """Returns a message of so many calls, and their results of this many characters each."""
    ids = [f"call_{name}_{at}" for at in range(number)]
    calls = [
        {
            "id": id_,
            "type": "function",
            "function": {"name": f"tool_{at}", "arguments": json.dumps({"p0": _text(chance, 100)})},
        }
        for at, id_ in enumerate(ids)
    ]
    results = [{"role": "tool", "tool_call_id": id_, "content": f"{_MARK} {_text(chance, size)}"} for id_ in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def _png(chance: random.Random) -> bytes:
    """A picture of noise, about 5 KB, which no compression makes smaller."""
    rows = b"".join(b"\0" + chance.randbytes(3 * _PICTURE_SIDE) for _ in range(_PICTURE_SIDE))
    head = struct.pack(">IIBBBBB", _PICTURE_SIDE, _PICTURE_SIDE, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, data) for kind, data in parts)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
