"""JSON that parsers read differently: duplicate keys, extreme numbers and depths, lone surrogates, byte order marks."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from tests.hostile.attacked_gateway import request
from tests.hostile.bodies import chat
from tests.hostile.wire import Hostile

BOM: Final = b"\xef\xbb\xbf"
HUGE: Final = (
    b"1" + b"0" * 400,
    b"9" * 5000,
    b"-" + b"9" * 400,
    b"1e400",
    b"-1e400",
    b"18446744073709551616",
    b"1E+999",
)
NUMBERS: Final = ("seed", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "top_logprobs")
GOOD: Final = b'"messages": [{"role": "user", "content": "Hello"}]'


def deep(levels: int) -> bytes:
    """A chat request nested so many levels deep."""
    return b'{"model": "m", %s, "metadata": %s1%s}' % (GOOD, b'{"a":' * (levels - 1), b"}" * (levels - 1))


# Of two values of a key the last one counts, and that is a wrong one.
LAST_WRONG: Final[Mapping[str, bytes]] = {
    "model": b'{"model": "m", "model": 1, %s}' % GOOD,
    "messages": b'{"model": "m", %s, "messages": 1}' % GOOD,
    "stream": b'{"model": "m", %s, "stream": true, "stream": "x"}' % GOOD,
    "tools": b'{"model": "m", %s, "tools": [], "tools": "x"}' % GOOD,
}
LAST_RIGHT: Final[Mapping[str, bytes]] = {
    "model": b'{"model": 1, "model": "m", %s}' % GOOD,
    "messages": b'{"model": "m", "messages": 1, %s}' % GOOD,
    "stream": b'{"model": "m", %s, "stream": "x", "stream": false}' % GOOD,
    "tools": b'{"model": "m", %s, "tools": "x", "tools": []}' % GOOD,
}


def refused() -> Iterator[Hostile]:
    """Every one is a 400."""
    for field in NUMBERS:
        for number in HUGE:
            if field in ("temperature", "top_p") and b"e" not in number.lower() and len(number) < 402:
                continue  # large, but a number
            body = b'{"model": "m", %s, "%s": %s}' % (GOOD, field.encode(), number)
            yield Hostile(f"{field} {number[:12]!r} {len(number)}", request(body), (400,))
    for levels in (65, 66, 100, 1000, 30_000):
        yield Hostile(f"{levels} levels", request(deep(levels)), (400,), "invalid_json")
    for name, body in LAST_WRONG.items():
        yield Hostile(f"{name} twice, the last one wrong", request(body), (400,))
    for name, body in {
        "two marks": BOM * 2 + chat(),
        "half a mark": BOM[:2] + chat(),
        "a mark behind": chat() + BOM,
    }.items():
        yield Hostile(name, request(body), (400,), "invalid_json")
    for coding in ("utf-16", "utf-16-be", "utf-32", "utf-7", "cp037"):
        body = json.dumps({"model": "m", "messages": [], "x": "+\u00e9"}).encode(coding, "replace")
        yield Hostile(
            f"{coding} that says so",
            request(body, media_type=b"application/json; charset=%s" % coding.encode()),
            (400,),
        )
    for text in ("\ud800", "\udc00 \ud800"):
        yield Hostile(f"a key {text!r}", request(json.dumps({text: 1}).encode()), (400,))


def served() -> Iterator[Hostile]:
    """Odd, but good requests: they are served, and whole."""
    yield Hostile("64 levels", request(deep(64)), (200,))
    yield Hostile("a mark", request(BOM + chat()), (200,))
    for name, body in LAST_RIGHT.items():
        yield Hostile(f"{name} twice, the last one right", request(body), (200,))
    for text in (
        "\x00",
        "a\x00b",
        "\ud800",
        "\udfff\ud800",
        "\ufffe\uffff",
        "\x1b[2J\x07",
        "\u202e\u2066",
        "\r\ndata: [DONE]\r\n\r\n",
    ):
        body = chat(messages=[{"role": "user", "content": text}])
        yield Hostile(f"content {text!r}", request(body), (200,))
        yield Hostile(
            f"content {text!r} streamed",
            request(chat(messages=[{"role": "user", "content": text}], stream=True)),
            (200,),
        )
    for model in ("m", "g", "agent", "chat"):
        for number in HUGE[:1] + HUGE[5:6]:
            for field in (
                b'"metadata": {"a": %s}',
                b'"tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": %s}}}]',
            ):
                body = b'{"model": "%s", %s, %s}' % (model.encode(), GOOD, field % number)
                yield Hostile(f"{model} {field[:7]!r} {len(number)}", request(body), (200, 400))
