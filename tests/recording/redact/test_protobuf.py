"""Bodies of protobuf, whole and broken in every way: no byte of them is left out."""

import base64
import re

import pytest

from gateway.recording.lines import RedactionLevel
from gateway.recording.redact.protobuf import find_parts, find_texts
from gateway.recording.redact.wire import Redactor
from gateway.recording.redact.words import Words
from tests.recording.redact.canaries import CANARIES, core_of

LEVELS: tuple[RedactionLevel, ...] = ("none", "shape", "full")
SAID = b"Weltraumbahnhof"
CANARY = CANARIES["openai"].encode()
CORE = core_of(CANARIES["openai"]).encode()
GRPC = "application/grpc+proto"
PLAIN = "application/x-protobuf"


def text(content: bytes) -> bytes:
    """A message with one text in its field 1."""
    return b"\n" + bytes([len(content)]) + content


def envelope(payload: bytes, flags: int = 0, size: int | None = None) -> bytes:
    return bytes([flags]) + (len(payload) if size is None else size).to_bytes(4, "big") + payload


def u32(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


# The length of the second is the code of a digit, which must be no part of the word behind it.
MESSAGES = [text(SAID + b" " + CANARY), text(CANARY.ljust(0x30, b"7"))]
FIRST = envelope(text(b"first"))
BODIES = {
    "envelopes": (GRPC, b"".join(map(envelope, MESSAGES))),
    "a message of another size than any": (GRPC, FIRST + envelope(MESSAGES[0], size=2**32 - 1)),
    "a compressed message": (GRPC, FIRST + envelope(MESSAGES[0], 1)),
    "unknown flags": (GRPC, FIRST + envelope(MESSAGES[0], 0x40)),
    "trailers in the body": ("application/grpc-web", FIRST + envelope(b"grpc-status:3\r\nx:" + CANARY, 0x80)),
    "words of trailers": ("application/grpc-web", FIRST + envelope(b"grpc-message:" + SAID + b"%20" + CANARY, 0x80)),
    "the end of Connect": ("application/connect+proto", FIRST + envelope(b'{"error":{"message":"%s"}}' % CANARY, 2)),
    "a broken character": (GRPC, envelope(text(SAID + b" \xff " + CANARY))),
    "half a character": (GRPC, envelope(text(b"caf\xc3")) + envelope(text(b"\xa9 " + CANARY))),
    "no message": (GRPC, envelope(b"\xff\xff" + SAID + b" " + CANARY)),
    "messages behind u32": (PLAIN, b"".join(map(u32, MESSAGES))),
    "messages behind varints": (PLAIN, b"".join(bytes([len(one)]) + one for one in MESSAGES)),
    "one message": (PLAIN, MESSAGES[0] + MESSAGES[1]),
    "one message of another type": ("", b"\x10\xff\x01" + MESSAGES[1]),
    "base64": ("text/event-stream", b"data: " + base64.b64encode(MESSAGES[1]) + b"\n\n"),
    "base64 of no message": ("text/event-stream", b"data: " + base64.b64encode(b"\xff\xff" + MESSAGES[0]) + b"\n\n"),
    "base64 of envelopes": ("application/grpc-web-text", base64.b64encode(b"".join(map(envelope, MESSAGES)))),
}


def holds(body: bytes, said: bytes) -> bool:
    """Whether a body has these bytes in it, as they are or in base64."""
    runs = re.findall(rb"[A-Za-z0-9+/]{4,}", body)
    return said in body or any(said in base64.b64decode(run[: len(run) // 4 * 4]) for run in runs)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", BODIES)
def test_no_secret_and_no_word_is_left_in_any_body(name: str, level: RedactionLevel) -> None:
    media, body = BODIES[name]
    clean = Redactor(Words(level, b"seed")).data(body, media)
    assert holds(body, CORE) and not holds(clean, CORE) and len(clean) == len(body)
    assert level == "none" or not holds(clean, SAID)


@pytest.mark.parametrize("name", [name for name in BODIES if "base64" not in name])
def test_what_stands_between_texts_stays(name: str) -> None:
    media, body = BODIES[name]
    clean = Redactor(Words("shape", b"seed")).data(body, media)
    parts = find_parts(body, media)
    assert parts and find_parts(clean, media) == parts
    for part in parts:
        before, after = (find_texts(one[part.start : part.stop], True) for one in (body, clean))
        assert part.flags or (before is None) == (after is None)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["envelopes", "messages behind u32", "messages behind varints", "one message"])
def test_a_body_that_is_cut_anywhere_is_redacted_to_its_end(name: str, level: RedactionLevel) -> None:
    media, body = BODIES[name]
    for size in range(len(body)):
        clean = Redactor(Words(level, b"seed")).data(body[:size], media)
        assert CORE not in clean and len(clean) == size
        assert level == "none" or SAID not in clean


@pytest.mark.parametrize("status", ["grpc-status:3", "Grpc-Status: 3"])
def test_the_status_in_the_body_stays(status: str) -> None:
    body = FIRST + envelope(f"{status}\r\ngrpc-message:Words%20of it\r\n".encode(), 0x80)
    assert status.encode() in Redactor(Words("full", b"seed")).data(body, "application/grpc-web")
