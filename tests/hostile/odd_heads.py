"""Well-formed heads of another protocol, another host or another client, as a table."""

from collections.abc import Iterator
from typing import Final

from tests.hostile.attacked_gateway import CLIENT_KEY, request
from tests.hostile.heads import CHUNKED, CLOSE, GET, HOST, KEY
from tests.hostile.wire import Hostile

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS_FRAME: Final = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
CHAT: Final = b"/v1/chat/completions"
BAD: Final = ((400,), "invalid_http")

# None of these is the same path, whatever a proxy before or a router behind may make of it.
ELSEWHERE: Final = (
    *(b"//v1/chat/completions", b"/v1//chat/completions", b"/./v1/chat/completions", b"/v1/x/../chat/completions"),
    *(b"/v1/chat%2Fcompletions/x", b"/v1\\chat\\completions", b"/v1/chat/completions/.", b"/v1/chat/completions%20"),
    *(
        b"/v1/chat/completions%00",
        b"/v1/chat/completions%0d%0ax: y",
        b"/%2Fv1/chat/completions",
        b"/v1/chat/completion",
    ),
    *(b"/v1/%2563hat/completions", b"/v1/chat/completions;/healthz", b"/healthz/../v1/chat/completions"),
    *(b"/v1/" + b"a" * 60_000, b"/" + b"%61" * 20_000, b"http://localhost/nowhere", b"http://evil.example/nowhere"),
)
# Each of these is: percent-encoding changes nothing, and the key is asked for all the same.
SAME: Final = (
    *(b"/v1/%63hat/completions", b"/%76%31/chat/completions", b"/v1%2Fchat/completions", b"/v1/chat/completions?x=y"),
    *(b"/v1/chat/completions?" + b"x" * 60_000, b"/v1/chat/completions?model=other&stream=true"),
)
# What only one line may say.
TWICE: Final = (
    *((b"content-type: application/json", b"content-type: text/plain"),),
    *((b"content-type: text/plain", b"content-type: application/json"),),
    *((b"content-type: application/json", b"Content-Type: application/json"),),
    *((b"authorization: Bearer no", KEY.strip()), (KEY.strip(), b"authorization: Bearer no"), (KEY.strip(),) * 2),
    *((b"content-encoding: gzip", b"content-encoding: identity"),),
    *((b"sec-fetch-site: cross-site", b"sec-fetch-site: same-origin"),),
    *((b"origin: http://evil.example", b"origin: http://127.0.0.1"),),
    *((b"x-dragoman-state: off", b"x-dragoman-state: on"),),
    *((b"x-dragoman-require: tools", b"x-dragoman-require: ids"),),
)
# Where proxies and frameworks look for an address, a method or a path.
MISLEADING: Final = (
    *(b"x-original-url: /healthz", b"x-rewrite-url: /healthz", b"x-forwarded-prefix: /healthz"),
    *(b"x-http-method-override: GET", b"x-forwarded-for: 127.0.0.1", b"forwarded: for=127.0.0.1;host=localhost"),
    *(b"x-real-ip: 127.0.0.1", b"api-key: %s" % CLIENT_KEY.encode(), b"x-forwarded-user: admin"),
)


def _head(*lines: bytes, first: bytes = b"POST " + CHAT + b" HTTP/1.1") -> bytes:
    return b"\r\n".join([first, HOST.strip(), CLOSE.strip(), *lines]) + b"\r\n\r\n"


def protocols() -> Iterator[Hostile]:
    """Other protocols, and methods that no route has."""
    for name, sent in {"HTTP/2": PREFACE, "HTTP/2 with a frame": PREFACE + SETTINGS_FRAME}.items():
        yield Hostile(name, sent, *BAD)
    for method in (b"OPTIONS", b"TRACE", b"HEAD"):
        sent = request(b"", b"x-echo: canary", path=CHAT, method=method)
        if method != b"HEAD":
            yield Hostile(f"{method!r}", sent, (405,), "method_not_allowed")
    asked = (b"origin: https://evil.example", b"access-control-request-method: POST")
    network = b"access-control-request-private-network: true"
    for path in (CHAT, b"/healthz", b"/v1/models", b"/metrics"):
        sent = request(b"", *asked, network, path=path, method=b"OPTIONS")
        yield Hostile(f"preflight {path!r}", sent, (405,), "method_not_allowed")
    yield Hostile("preflight without a key", request(b"", *asked, method=b"OPTIONS", key="no"), (401,))
    for target in (b"*", b"localhost:80", b"http://localhost/v1/models"):
        sent = _head(KEY.strip(), first=b"OPTIONS " + target + b" HTTP/1.1")
        yield Hostile(f"OPTIONS {target!r}", sent, (400, 404, 405))
    for target in (b"127.0.0.1:1", b"localhost:80", CHAT):
        sent = _head(KEY.strip(), first=b"CONNECT " + target + b" HTTP/1.1")
        yield Hostile(f"CONNECT {target!r}", sent, (400, 404, 405))


def targets() -> Iterator[Hostile]:
    """Addresses that look like a route and are none, and the other way round."""
    for path in ELSEWHERE:
        name = f"{path[:40]!r} {len(path)}"
        yield Hostile(f"elsewhere {name}", request(path=path), (400, 404))
        yield Hostile(f"elsewhere without a key {name}", request(path=path, key="no"), (400, 401))
    for path in SAME:
        name = f"{path[:40]!r} {len(path)}"
        yield Hostile(f"the same without a key {name}", request(path=path, key="no"), (401,), "invalid_api_key")
        yield Hostile(f"the same without a body {name}", request(b"", path=path), (400,), "invalid_json")


def heads() -> Iterator[Hostile]:
    """Names with underscores, lines said twice or folded, and headers that claim what they cannot know."""
    body = b"content-length: 2\r\n\r\n{}"
    typed, key = b"content-type: application/json", KEY.strip()
    for first, second in TWICE:
        own = [line for line in (typed, key) if line.partition(b":")[0] != first.partition(b":")[0].lower()]
        sent = _head(*own, first, second).removesuffix(b"\r\n") + body
        yield Hostile(f"twice {first!r} {second!r}", sent, (400,), "duplicate_header")
    for line in (b"content_type: application/json", b"content-type : application/json", b"x: y\r\n\tcontent-type: z"):
        sent = _head(key, line).removesuffix(b"\r\n") + body
        yield Hostile(f"type in {line!r}", sent, (400, 415))
    for line in (b"transfer_encoding: chunked", b"content_length: 40"):
        yield Hostile(f"length in {line!r}", _head(key, typed, line) + b"2\r\n{}\r\n0\r\n\r\n", (400,))
    for line in (b"authorization: Bearer\r\n " + CLIENT_KEY.encode(), b"content-length:\r\n 2", b"x:\r\n\r\n\t y"):
        sent = _head(typed, line) + b"{}"
        yield Hostile(f"folded {line!r}", sent, (400, 401))
    for line in MISLEADING:
        sent = GET + HOST + CLOSE + line + b"\r\n\r\n"
        yield Hostile(f"misleading {line!r}", sent, (401,), "invalid_api_key")
    other = b"x-api-key: %s" % CLIENT_KEY.encode()
    yield Hostile(
        "a key where clients of another API send it", _head(other, typed, b"content-length: 2") + b"{}", (401,)
    )
    evil = GET + b"host: evil.example\r\n" + KEY + CLOSE
    for line in (b"x-forwarded-host: localhost", b"forwarded: host=localhost", b"x-host: localhost"):
        yield Hostile(f"host in {line!r}", evil + line + b"\r\n\r\n", (421,), "unknown_host")
    for line in (b"expect: 100-continue", b"expect: 200-ok"):
        sent = _head(b"authorization: Bearer no", typed, line, b"content-length: 9")
        yield Hostile(f"{line!r} with a wrong key", sent, (401,), "invalid_api_key")
    yield Hostile("chunks behind an underscore", _head(key, typed, CHUNKED.strip(), b"content_length: 2") + b"x", *BAD)
