"""Chat requests with an error in each field, and bodies that are not chat requests, as tables."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from tests.hostile.attacked_gateway import MAX_BODY, request
from tests.hostile.wire import Hostile

NOT_JSON: Final[Mapping[str, bytes]] = {
    "nothing": b"",
    "spaces": b"   \r\n",
    "half an object": b'{"model": "m", "messages": [',
    "half a string": b'{"model": "m',
    "two objects": b"{}{}",
    "text behind": b'{"model": "m"} x',
    "single quotes": b"{'model': 'm'}",
    "a comment": b'{"model": "m" /* x */}',
    "a last comma": b'{"model": "m",}',
    "no quotes": b'{model: "m"}',
    "NaN": b'{"model": "m", "temperature": NaN}',
    "Infinity": b'{"model": "m", "temperature": Infinity}',
    "-Infinity": b'{"model": "m", "temperature": -Infinity}',
    "a hexadecimal number": b'{"model": "m", "seed": 0x10}',
    "a leading zero": b'{"model": "m", "seed": 007}',
    "a plus": b'{"model": "m", "seed": +1}',
    "a raw newline": b'{"model": "m\n"}',
    "a raw NUL": b'{"model": "m\x00"}',
    "a bad escape": b'{"model": "\\x41"}',
    "half an escape": b'{"model": "\\u12"}',
    "Latin-1": b'{"model": "caf\xe9"}',
    "an overlong slash": b'{"model": "\xc0\xaf"}',
    "a surrogate as UTF-8": b'{"model": "\xed\xa0\x80"}',
    "beyond Unicode": b'{"model": "\xf4\x90\x80\x80"}',
    "UTF-16": '{"model": "m"}'.encode("utf-16"),
    "UTF-16 without a mark": '{"model": "m"}'.encode("utf-16-le"),
    "UTF-32": '{"model": "m"}'.encode("utf-32"),
    "gzip": gzip.compress(b"{}"),
    "a form": b"model=m&messages=x",
    "XML": b'<?xml version="1.0"?><!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>',
    "protobuf": b"\x0a\x03abc\x12\x00",
    "an event": b'data: {"model": "m"}\n\n',
    "deep arrays": b'{"model": "m", "messages": ' + b"[" * 90_000,
    "deep and closed": b'{"model": "m", "messages": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    "deep objects": b'{"a":' * 2000 + b"1" + b"}" * 2000,
    "deeper than can be written": b'{"model": "m", "metadata": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}",
}
NOT_AN_OBJECT: Final = (b"[]", b"null", b"true", b"1", b'"text"', b"1e400", b"[" * 60 + b"]" * 60)

NUMBER: Final[tuple[object, ...]] = ("x", True, [], {}, ["x"])
WHOLE: Final[tuple[object, ...]] = (*NUMBER, 1.5)
FLAG: Final[tuple[object, ...]] = ("true", 1, 0.5, [], {})
OBJECT: Final[tuple[object, ...]] = ("x", True, 1, [], [{}])
LIST: Final[tuple[object, ...]] = ("x", True, 1, {}, [1], ["x"], [None], [[]])

# Fields of the envelope, and for each what it can never be.
FIELDS: Final[Mapping[str, tuple[object, ...]]] = {
    "model": (None, True, 1, [], {}, "", "  ", ["m"]),
    "messages": (None, True, 1, "x", {}, [], {"role": "user", "content": "x"}),
    "stream": FLAG,
    "stream_options": (*OBJECT, {"include_usage": "x"}, {"include_usage": 1}),
    "tools": (
        *LIST,
        *([{"type": 1}], [{"type": "function"}], [{"function": {}}], [{"function": {"name": 1}}]),
        *([{"function": {"name": "f", "parameters": []}}], [{"function": {"name": "f", "strict": "x"}}]),
        [{"function": {"name": "f", "description": 1}}],
    ),
    "tool_choice": (True, 1, [], "sometimes", {"type": 1}, {"function": 1}, {"function": {"name": 1}}),
    "parallel_tool_calls": FLAG,
    "temperature": NUMBER,
    "top_p": NUMBER,
    "max_tokens": WHOLE,
    "max_completion_tokens": WHOLE,
    "stop": (True, 1, {}, [1], [None], [[]]),
    "seed": WHOLE,
    "n": (*WHOLE, 0, 2, -1, 10**6),
    "frequency_penalty": NUMBER,
    "presence_penalty": NUMBER,
    "logprobs": FLAG,
    "top_logprobs": WHOLE,
    "logit_bias": (*OBJECT, {"1": "x"}, {"1": None}),
    "response_format": OBJECT,
    "functions": (*LIST, [{}], [{"name": 1}]),
    "function_call": (True, 1, [], {}, {"name": 1}),
}

ODD: Final[tuple[object, ...]] = (
    None,
    True,
    1,
    "x",
    [],
    {},
    [None],
    [[]],
    [{"type": "text"}],
    [{"type": 1}],
    {"a": []},
)
ROLES: Final[tuple[object, ...]] = (
    None,
    1,
    [],
    {},
    "",
    "root",
    "USER",
    "tool",
    "function",
    "developer\n",
    "a" * 10_000,
)
CALLS: Final[tuple[object, ...]] = (
    *("x", 1, {}, [1], [[]], [None], [{}], [{"id": 1}], [{"id": "a", "type": "function"}]),
    *([{"id": "a", "function": 1}], [{"id": "a", "function": {"name": 1, "arguments": 1}}]),
    [{"id": "a\r\nx-injected: 1", "type": "function", "function": {"name": "f", "arguments": "{"}}],
    [{"id": "", "type": "function", "function": {"name": "", "arguments": "[]"}}],
    [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "\u202ef\x00", "arguments": '{"a":' * 100 + "1" + "}" * 100},
        }
    ],
    [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"n": 1e999}'}}] * 2,
)
USER: Final[dict[str, object]] = {"role": "user", "content": "Hello"}


def chat(**fields: object) -> bytes:
    """The body of a chat request with these fields instead of the good ones."""
    return json.dumps({"model": "m", "messages": [USER], **fields}).encode()


def documents(path: bytes) -> Iterator[Hostile]:
    """Bodies that are no JSON, or no object. Every one is refused."""
    for name, body in NOT_JSON.items():
        yield Hostile(f"{path!r} {name}", request(body, path=path), (400,), "invalid_json")
    for body in NOT_AN_OBJECT:
        yield Hostile(f"{path!r} {body[:12]!r}", request(body, path=path), (400,))


def wrapper_tools() -> Iterator[Hostile]:
    """Yields valid requests with one wrong field each. Each is refused with an error that names the field."""
    for field, values in FIELDS.items():
        for value in values:
            body = chat(**{field: value})
            yield Hostile(f"{field}={json.dumps(value)}", request(body), (400,))
    for field in ("model", "messages"):
        document = {key: value for key, value in json.loads(chat()).items() if key != field}
        body = json.dumps(document).encode()
        yield Hostile(f"no {field}", request(body), (400,), "missing_required_parameter")
    for model in ("M", "m ", "../m", "m\n", "*", "agent\x00", "a" * 10_000, "\ud800", "<script>", "{{7*7}}", "%2e"):
        yield Hostile(f"model {model[:9]!r}", request(chat(model=model)), (404,), "model_not_found")


def messages() -> Iterator[tuple[str, list[object]]]:
    """Histories whose messages have no shape that the protocol knows."""
    for value in ODD:
        yield f"a message {json.dumps(value)}", [USER, value]
        yield f"user content {json.dumps(value)}", [USER, {"role": "user", "content": value}, USER]
        yield f"result {json.dumps(value)}", [USER, {"role": "tool", "tool_call_id": "a", "content": value}]
        yield f"result id {json.dumps(value)}", [USER, {"role": "tool", "tool_call_id": value, "content": "x"}]
    for role in ROLES:
        yield f"role {json.dumps(role)[:20]}", [USER, {"role": role, "content": "x"}]
    for place, calls in enumerate(CALLS):
        yield f"calls {place}", [USER, {"role": "assistant", "content": None, "tool_calls": calls}, USER]


def histories(model: str, statuses: tuple[int, ...]) -> Iterator[Hostile]:
    """The same as requests, whole and streamed in turn. (One of them has nothing wrong with it.)"""
    for place, (name, history) in enumerate(messages()):
        if name == 'user content "x"':
            continue
        body = chat(model=model, messages=history, stream=place % 2 == 0)
        yield Hostile(f"{model}: {name}", request(body), statuses)


def sizes() -> Iterator[Hostile]:
    """More than may be sent, said beforehand or not."""
    large = b" " * (MAX_BODY + 1)
    told = ((413,), "request_too_large")
    yield Hostile("declared", request(large), *told)
    for length in (MAX_BODY + 1, 2**31, 2**63 - 1):
        head = request(b"").replace(b"content-length: 0", b"content-length: %d" % length)
        yield Hostile(f"declared {length} and never sent", head, *told)
    head = request(b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
    chunks = b"".join(b"%x\r\n%s\r\n" % (1000, b" " * 1000) for _ in range(MAX_BODY // 1000 + 1))
    yield Hostile("in chunks", head + chunks + b"0\r\n\r\n", *told)
    yield Hostile("in chunks without an end", head + chunks, *told)
    bomb = gzip.compress(b" " * 10_000_000)
    yield Hostile("a bomb", request(bomb, b"content-encoding: gzip"), *told)
    yield Hostile("a bomb in deflate", request(zlib.compress(b" " * 10_000_000), b"content-encoding: deflate"), *told)
    yield Hostile("a bomb of bombs", request(gzip.compress(bomb), b"content-encoding: gzip"), (400,), "invalid_json")
