"""Heads and framings that proxies and servers parse differently, as a table of requests."""

from collections.abc import Iterator
from typing import Final

from tests.hostile.attacked_gateway import CLIENT_KEY, request
from tests.hostile.wire import Hostile

BAD: Final = ((400,), "invalid_http")

GET: Final = b"GET /v1/models HTTP/1.1\r\n"
HOST: Final = b"host: localhost\r\n"
KEY: Final = b"authorization: Bearer %s\r\n" % CLIENT_KEY.encode()
CLOSE: Final = b"connection: close\r\n"
POST: Final = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\n" + HOST + KEY + CLOSE
CHUNKED: Final = b"transfer-encoding: chunked\r\n"

REQUEST_LINES: Final = (
    *(b"GET", b"GET /v1/models", b"GET  /v1/models HTTP/1.1 ", b" GET /v1/models HTTP/1.1"),
    *(b"get /v1/models HTTP/1.1", b"GET /v1/models http/1.1", b"GET /v1/models HTTP/0.9", b"GET /v1/models HTTP/9.9"),
    *(b"GET /v1/models HTTP/1.2", b"GET /v1/models HTTP/2.0", b"GET /v1/models HTTP/1.1x", b"GET /v1/models HTTP/11"),
    *(b"GET /v1/models HTTP/1,1", b"GET /v1/models HTTPS/1.1", b"GET\x00/v1/models HTTP/1.1", b"GET /v1\x00 HTTP/1.1"),
    *(b"GET v1/models HTTP/1.1", b"G\xc3\x89T /v1/models HTTP/1.1", b"BREW /v1/models HTTP/1.1", b"PRI * HTTP/2.0"),
    *(b"SSH-2.0-OpenSSH_9.9", b"EHLO localhost", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x05\x01\x00"),
    *(b"\x00" * 64, b"\xff\xfe\xfd", b"GET /v1 /models HTTP/1.1", b"GET /v1/mod\x7fels\x01 HTTP/1.1"),
)

# Between a good request line and the end of the head.
HEADER_LINES: Final = (
    *(b"no colon here", b": no name", b"a name: x", b"name : x", b"name\t: x", b" folded: first", b"na\x00me: x"),
    *(b"x: a\x00b", b"x: a\x01b", b"x: a\rb", b"x: a\nb", b"x: a\x7fb", b"x: a\r\n folded", b"(x): y", b'"x": y'),
    *(b"\xc3\xa9: y", b"x@y: z", b"x\r: y", b"x: y\r\r", b"x[]: y"),
    *(b"x: " + b"y" * 70_000, b"x" * 70_000 + b": y", b"\r\n".join(b"x%d: y" % n for n in range(200))),
)

LENGTHS: Final = (
    *(b"-1", b"+2", b"2 2", b"2,2", b"0x2", b"2.0", b"1e1", b"", b"two", b"\xd9\xa2", b"2\x00", b"2;2"),
    *(b"18446744073709551616", b"9" * 40),
)

# Each with a length beside it and, where the coding itself is wrong, without.
CODINGS: Final = (b"chunked", b"Chunked", b"chunked, identity", b"identity", b"xchunked", b"chunked, gzip", b"gzip")
WRONG_CODINGS: Final = (b"identity", b"xchunked", b"gzip", b"chunked, gzip", b"chunked, identity", b"\x0bchunked")

CHUNKS: Final = (
    *(b"g\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n", b"+2\r\n{}\r\n0\r\n\r\n", b"0x2\r\n{}\r\n0\r\n\r\n"),
    *(b" 2\r\n{}\r\n0\r\n\r\n", b"2 2\r\n{}\r\n0\r\n\r\n", b"\r\n{}\r\n0\r\n\r\n", b"2\r\n{}x\r\n0\r\n\r\n"),
    *(
        b"2\r\n{}0\r\n\r\n",
        b"2\r{}\r\n0\r\n\r\n",
        b"2\n{}\n0\n\n",
        b"FFFFFFFFFFFFFFFFFFFF\r\n{}",
        b"2\r\n{}\r\nzz\r\n\r\n",
    ),
    *(b"2;\x00=1\r\n{}\r\n0\r\n\r\n", b"\x00\x01\x02\r\n\r\n"),
)

HOSTS: Final = (
    *(b"evil.example", b"localhost.evil.example", b"localhost@evil.example", b"evil.example#localhost", b""),
    *(b"localhost, evil.example", b"127.0.0.1.nip.io", b"127.1", b"0x7f000001", b"2130706433", b"[::1", b"0.0.0.0"),
    *(b"[::ffff:127.0.0.1]", b"evil.example:127.0.0.1", b"localhost.", b"\xe2\x84\x93ocalhost", b"localhost evil"),
)


def request_lines() -> Iterator[Hostile]:
    """Whole heads whose first line is wrong."""
    for line in REQUEST_LINES:
        yield Hostile(f"line {line[:40]!r}", line + b"\r\n" + HOST + KEY + CLOSE + b"\r\n", *BAD)
    yield Hostile("line too long", b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n", *BAD)
    yield Hostile("bare LF", (GET + HOST + KEY + CLOSE + b"\r\n").replace(b"\r", b""), *BAD)
    yield Hostile("bare CR", (GET + HOST + KEY + CLOSE + b"\r\n").replace(b"\n", b""), *BAD)


def header_lines() -> Iterator[Hostile]:
    """One wrong line in a good head."""
    for line in HEADER_LINES:
        yield Hostile(f"header {line[:24]!r} {len(line)}", GET + HOST + KEY + CLOSE + line + b"\r\n\r\n", *BAD)
    yield Hostile("no host", GET + KEY + CLOSE + b"\r\n", *BAD)
    yield Hostile("two hosts", GET + HOST + HOST + KEY + CLOSE + b"\r\n", *BAD)
    yield Hostile("another host below", GET + HOST + KEY + b"Host: evil.example\r\n" + CLOSE + b"\r\n", *BAD)
    for host in HOSTS:
        yield Hostile(f"host {host!r}", GET + b"host: %s\r\n" % host + KEY + CLOSE + b"\r\n", (400, 421))


def framings() -> Iterator[Hostile]:
    """Bodies whose length can be read in two ways, or in none."""
    for length in LENGTHS:
        yield Hostile(f"length {length[:24]!r}", POST + b"content-length: %s\r\n\r\n{}" % length, *BAD)
    for first, second in ((b"2", b"2"), (b"2", b"3"), (b"0", b"40")):
        lines = b"content-length: %s\r\ncontent-length: %s\r\n\r\n{}" % (first, second)
        yield Hostile(f"lengths {first!r} {second!r}", POST + lines, *BAD)
    smuggled = b"0\r\n\r\nGET /v1/models HTTP/1.1\r\n" + HOST + KEY + b"\r\n"
    for coding in CODINGS:
        for place, lines in (
            ("after", b"content-length: 5\r\ntransfer-encoding: %s\r\n" % coding),
            ("before", b"transfer-encoding: %s\r\ncontent-length: 5\r\n" % coding),
        ):
            yield Hostile(f"length and {coding!r} {place}", POST + lines + b"\r\n" + smuggled, *BAD)
    for coding in WRONG_CODINGS:
        yield Hostile(f"coding {coding!r}", POST + b"transfer-encoding: %s\r\n\r\n" % coding + smuggled, *BAD)
    for chunks in CHUNKS:
        yield Hostile(f"chunks {chunks[:24]!r}", POST + CHUNKED + b"\r\n" + chunks, *BAD)


def crossed() -> Iterator[Hostile]:
    """What must not be believed although it is well formed."""
    trailed = b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST + CLOSE + CHUNKED
    end = b"\r\n2\r\n{}\r\n0\r\n"
    for line in (KEY, KEY.upper(), b"x: y\r\n" + KEY):
        yield Hostile(f"key in a trailer {line[:8]!r}", trailed + end + line + b"\r\n", (401,), "invalid_api_key")
    typed = b"content-type: application/json\r\n"
    yield Hostile("type in a trailer", trailed + KEY + end + typed + b"\r\n", (415,), "unsupported_media_type")
    evil = b"host: evil.example\r\n"
    yield Hostile(
        "host in a trailer", trailed + KEY + typed + end + evil + b"\r\n", (400,), "missing_required_parameter"
    )
    for name in (
        b"authorization ",
        b"x-authorization",
        b"proxy-authorization",
        b"api-key",
        b"cookie",
        b"auth_orization",
    ):
        wanted = ((400,), "invalid_http") if name.endswith(b" ") else ((401,), "invalid_api_key")
        line = name + b": Bearer %s\r\n" % CLIENT_KEY.encode()
        yield Hostile(f"key in {name!r}", GET + HOST + CLOSE + line + b"\r\n", *wanted)
    for target in (b"http://evil.example/v1/models", b"*", b"//evil.example/v1/models", b"?x", b"/v1/models#x"):
        yield Hostile(f"target {target!r}", request(path=target, method=b"PUT"), (400, 404, 405))
    yield Hostile("connect", b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + KEY + CLOSE + b"\r\n", (400, 404, 405))
    query = b"/v1/models?api_key=%s&key=%s" % (CLIENT_KEY.encode(), CLIENT_KEY.encode())
    yield Hostile("key in the query", request(b"", path=query, method=b"GET", key="no"), (401,), "invalid_api_key")
