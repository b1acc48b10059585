"""Hostile upgrades, and what is sent over a WebSocket: frames, bombs, events, lanes and steering, as tables."""

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from gateway.core.conversation import Json
from gateway.server.http.websocket_messages import MOST_FRAGMENTS
from tests.hostile.attacked_gateway import CLIENT_KEY, MAX_BODY
from tests.hostile.wire import Hostile, HostileSocket
from tests.server.http.test_websocket_messages import FIN, KEY, RSV1, deflated, frame
from tests.server.websocket_client import upgrade

AUTHORIZED: Final = f"authorization: Bearer {CLIENT_KEY}"
TEXT: Final = FIN | 1
_ABOVE: Final = b"x" * (MAX_BODY + 1)
_WELL: Final[dict[str, Json]] = {"type": "response.create", "model": "m", "input": "x"}
_STEER: Final[dict[str, Json]] = {"type": "response.steer", "previous_response_id": "resp_1", "input": "x"}


def upgrades() -> Iterator[Hostile]:
    """Upgrades that are refused over HTTP: with the key, unless they are about it."""
    for name, line in (
        ("another site", "origin: https://example.com"),
        ("another port", "origin: http://localhost:1"),
        ("no site", "origin: null"),
        ("a file", "origin: file://localhost"),
        ("an extension", "origin: chrome-extension://abcdef"),
        ("a site that begins so", "origin: http://localhost.example.com"),
        ("no page", "origin: "),
        ("a cross-site page", "sec-fetch-site: cross-site"),
    ):
        yield Hostile(f"a page of {name}", _upgrade(AUTHORIZED, line), (403,), "cross_site_request")
    yield Hostile("two origins", _upgrade(AUTHORIZED, *["origin: http://localhost"] * 2), (400,), "duplicate_header")
    yield Hostile("a foreign host", _upgrade(AUTHORIZED, host="other.example"), (421,), "unknown_host")
    yield Hostile("no key", _upgrade(), (401,), None)
    yield Hostile("a wrong key", _upgrade("authorization: Bearer no"), (401,), "invalid_api_key")
    for name in ("key", "api_key", "access_token", "authorization"):
        yield Hostile(f"the key in the query as {name}", _upgrade(path=f"/v1/responses?{name}={CLIENT_KEY}"), (401,))
    yield Hostile("the key as a protocol", _upgrade(f"sec-websocket-protocol: {CLIENT_KEY}"), (401,))
    for version in ("8", "0", "13, 8", "x"):
        sent = _upgrade(AUTHORIZED).replace(b"version: 13", b"version: " + version.encode())
        yield Hostile(f"the version {version}", sent, (426,), "unsupported_operation")
    for nonce in ("", "AAAA", "!" * 24, "A" * 64):
        yield Hostile(f"the nonce {nonce!r}", _upgrade(AUTHORIZED, key=nonce), (426,), "unsupported_operation")
    for path in ("/v1/messages", "/v1/chat/completions"):
        yield Hostile(f"the path {path}", _upgrade(AUTHORIZED, path=path), (405,), "method_not_allowed")
    for path in ("/v1/realtime", "/v1//responses"):
        yield Hostile(f"the path {path}", _upgrade(AUTHORIZED, path=path), (404,), "unknown_url")


def _upgrade(*lines: str, path: str = "/v1/responses", host: str = "localhost", key: str | None = None) -> bytes:
    """An upgrade; where it is refused, the connection is to be closed."""
    return upgrade(*lines, path=path, host=host, key=key).replace(b"keep-alive, Upgrade", b"close, Upgrade")


_FRAMES: Final[Mapping[str, tuple[bytes, int]]] = {
    "binary": (frame(FIN | 2, b"x"), 1003),
    "not masked": (frame(TEXT, b"x", masked=False), 1002),
    "an unknown opcode": (frame(FIN | 3, b"x"), 1002),
    "a reserved bit": (frame(TEXT | 0x20, b"x"), 1002),
    "compressed without the extension": (frame(TEXT | RSV1, b"x"), 1002),
    "a continuation of nothing": (frame(FIN, b"x"), 1002),
    "a message within a message": (frame(1, b"x") + frame(TEXT, b"y"), 1002),
    "a ping in fragments": (frame(9), 1002),
    "a long ping": (frame(FIN | 9, b"x" * 126), 1002),
    "a length with the highest bit": (b"\x81\xff" + b"\xff" * 8 + KEY, 1002),
    "a length above the limit, without its bytes": (b"\x81\xff" + struct.pack("!Q", 2**62) + KEY + _ABOVE * 2, 1009),
    "not UTF-8": (frame(TEXT, b"\xff"), 1007),
    "a surrogate": (frame(TEXT, b"\xed\xa0\x80"), 1007),
    "too large": (frame(TEXT, _ABOVE), 1009),
    "too large in fragments": (frame(1, _ABOVE[:-1]) + frame(0, b"x"), 1009),
    "fragments without end": (frame(1) + frame(0) * MOST_FRAGMENTS, 1009),
    "a request of HTTP": (b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", 1002),
}
_BOMBS: Final[Mapping[str, tuple[bytes, int]]] = {
    "a thousand times": (frame(TEXT | RSV1, deflated(b"x" * (64 * MAX_BODY))), 1009),
    "a bomb of bombs": (frame(TEXT | RSV1, deflated(deflated(b"x" * 2**24) * 40)), 1009),
    "one byte more": (frame(TEXT | RSV1, deflated(_ABOVE)), 1009),
    "in fragments": (frame(1 | RSV1, deflated(_ABOVE)[:20]) + frame(FIN, deflated(_ABOVE)[20:]), 1009),
    "no deflate": (frame(TEXT | RSV1, b"\xff\xff\xff"), 1007),
    "something behind its last block": (frame(TEXT | RSV1, b"\x03\x00more"), 1007),
    "a compressed continuation": (frame(1, b"x") + frame(FIN | RSV1, deflated(b"x")), 1002),
    "a compressed ping": (frame(FIN | 9 | RSV1, deflated(b"x")), 1002),
}


def frames() -> Iterator[HostileSocket]:
    """Frames and compressed messages that end their connection, with the error of what is no message before it."""
    for deflate, table in ((False, _FRAMES), (True, _BOMBS)):
        for name, (sent, closed) in table.items():
            code = "request_too_large" if closed == 1009 else "invalid_value"
            yield HostileSocket(name, sent, (code,), closed, deflate)
            # A message that waits for its turn is lost with it, and nothing behind it is read.
            yield HostileSocket(f"{name}, and more", sent + _texts(_WELL), (code,), closed, deflate)


# What is no type of an event, no name of a lane, no id of a response and no input of a steering event.
_TYPES: Final[tuple[Json, ...]] = (
    *(None, 1, [], {}, "", "session.update", "response.cancel", "response.completed", "x" * 9000),
)
_LANES: Final[tuple[Json, ...]] = (1, True, [], {}, "", "x" * 257)
_TARGETS: Final[tuple[Json, ...]] = (None, 1, [], {})
_INPUTS: Final[tuple[Json, ...]] = (
    None,
    1,
    True,
    {},
    [],
    [1],
    [[]],
    [{}],
    ["x"],
    [{"role": "system", "content": "x"}],
    [{"role": "developer", "content": "x"}],
    [{"role": "assistant", "content": "x"}],
    [{"role": 1, "content": "x"}],
    [{"type": "function_call_output", "call_id": "k", "output": "x"}],
    [{"type": "message", "role": "user", "content": [{"type": "output_text", "text": "x"}]}],
    [{"type": "message", "role": "user", "content": "x", "id": "msg_1"}],
)
_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    "no JSON": ("{", "invalid_json"),
    "nothing": ("", "invalid_json"),
    "no object": ("[1]", "invalid_json"),
    "NaN": ('{"type": "response.create", "model": "m", "temperature": NaN}', "invalid_json"),
    "deep": ('{"type": "response.create", "x": ' + "[" * 5000 + "]" * 5000 + "}", "invalid_json"),
    "half a character in a type": (r'{"type": "\ud83d"}', "invalid_value"),
    **{f"the type {kind!r}": (json.dumps({"type": kind}), "invalid_value") for kind in _TYPES},
    **{f"the lane {str(lane)[:20]!r}": (json.dumps({**_WELL, "stream_id": lane}), "invalid_value") for lane in _LANES},
    "no model": ('{"type": "response.create", "input": "x"}', "missing_required_parameter"),
    "an unknown model": ('{"type": "response.create", "model": "x", "input": "x"}', "model_not_found"),
    "in the background": (json.dumps({**_WELL, "background": True}), "unsupported_parameter"),
    "generate is a text": (json.dumps({**_WELL, "generate": "no"}), "invalid_value"),
    "a response of somebody else": (
        json.dumps({**_WELL, "previous_response_id": "resp_" + "0" * 24}),
        "previous_response_not_found",
    ),
}
_STEERS: Final[Mapping[str, tuple[str, str]]] = {
    "an unknown response": (json.dumps(_STEER), "response_not_found"),
    **{
        f"the response {target!r}": (json.dumps({**_STEER, "previous_response_id": target}), "invalid_input")
        for target in _TARGETS
    },
    **{
        f"the input {str(given)[:40]!r}": (json.dumps({**_STEER, "input": given}), "invalid_input") for given in _INPUTS
    },
    **{
        f"the field {name}": (json.dumps({**_STEER, name: "x"}), "invalid_input")
        for name in ("stream_id", "model", "instructions", "tools")
    },
    "half a character": (
        r'{"type": "response.steer", "previous_response_id": "r", "input": "\ud83d"}',
        "invalid_input",
    ),
    "two inputs": (
        '{"type": "response.steer", "previous_response_id": "resp_1", "input": "x", "input": 7}',
        "invalid_input",
    ),
    **{
        f"the number {value}": (f'{{"type": "response.steer", "previous_response_id": "r", "input": {value}}}', code)
        for value, code in (("NaN", "invalid_json"), ("-Infinity", "invalid_json"), ("1e999", "invalid_input"))
    },
}


def events() -> Iterator[HostileSocket]:
    """Events that are errors, one by one and as many at once; the connection stays, until the client closes it."""
    for table in (_EVENTS, _STEERS):
        for name, (text, code) in table.items():
            yield HostileSocket(name, frame(TEXT, text.encode()), (code,))
            yield HostileSocket(f"{name}, compressed", frame(TEXT | RSV1, deflated(text.encode())), (code,), 1000, True)
    refused = [(text, code) for text, code in _STEERS.values() if code != "model_not_found"]
    yield HostileSocket(
        "all steering events at once",
        b"".join(frame(TEXT, text.encode()) for text, _ in refused),
        tuple(code for _, code in refused),
    )
    lanes = [json.dumps({**_WELL, "model": "x", "stream_id": f"lane {number}"}).encode() for number in range(8)]
    yield HostileSocket("every lane at once", b"".join(frame(TEXT, text) for text in lanes), ("model_not_found",) * 8)


def _texts(*found: Json) -> bytes:
    return b"".join(frame(TEXT, json.dumps(event).encode()) for event in found)
