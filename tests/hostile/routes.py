"""Paths, methods, keys, sites and media types that are not served, as a table of requests."""

from collections.abc import Iterator
from typing import Final

from tests.hostile.attacked_gateway import CLIENT_KEY, request
from tests.hostile.wire import Hostile

PATHS: Final = (
    *(b"//", b"/v1", b"/v1/", b"/v2/chat/completions", b"/v1/chat/completions/", b"/v1//chat/completions"),
    *(
        b"/V1/CHAT/COMPLETIONS",
        b"/v1/completions/",
        b"/api",
        b"/api/chat/",
        b"/API/CHAT",
        b"/v1/embeddings",
    ),
    *(b"/.env", b"/.git/config", b"/etc/passwd", b"/../../etc/passwd", b"/v1/../../etc/passwd", b"/static/x"),
    *(b"/%2e%2e/%2e%2e/etc/passwd", b"/v1/models%00", b"/%00", b"/%ff%fe", b"/%E2%80%AE", b"/admin", b"/settings.json"),
    *(b"/debug/pprof", b"/server-status", b"/actuator/env", b"/wp-login.php", b"/console", b"/graphql", b"/ws"),
    *(b"/v1/models/nothing", b"/v1/models/../m", b"/v1/models/%2e%2e%2fm", b"/health", b"/key/generate", b"/user/new"),
    *(b"/" + b"a" * 5000, b"/" + b"a/" * 2000, b"/v1/chat/completions;x=1", b"/v1/chat/completions%2f", b"/redoc"),
)
ROUTES: Final = (
    *(b"/v1/chat/completions", b"/chat/completions", b"/v1/models", b"/v1/events", b"/v1/explain", b"/healthz"),
    *(b"/readyz", b"/metrics", b"/openapi.json", b"/docs"),
)
READ: Final = (b"GET", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"PROPFIND")
POSTED: Final = (b"/v1/chat/completions", b"/chat/completions", b"/v1/explain")
# Of these `GET` is refused in words of its own.
RESPONSES: Final = (b"/v1/responses", b"/responses")
OLLAMA: Final = (b"/api/chat", b"/api/generate", b"/api/show", b"/api/pull", b"/api/embed", b"/v1/completions")

KEYS: Final = (
    *("", "no", CLIENT_KEY[:-1], CLIENT_KEY + "x", CLIENT_KEY.upper(), CLIENT_KEY + "," + CLIENT_KEY, "Bearer"),
    *("null", "undefined", "*", "' OR 1=1 --", "${jndi:ldap://x}", "\u00e9", "x" * 20_000, "../../key"),
)
MEDIA_TYPES: Final = (
    *(b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x", b"*/*", b"json"),
    *(
        b"application/jsonp",
        b"text/plain; application/json",
        b"application/json, text/plain",
        b"application/x-protobuf",
    ),
    *(b"application/octet-stream", b"text/json", b"application/json+x", b"text/event-stream"),
)
ENCODINGS: Final = (b"br", b"zstd", b"gzip, identity", b"gzip, gzip", b"chunked", b"*")
COMPRESSED: Final = (b"gzip", b"deflate", b"GZIP", b"x-gzip")


def routes() -> Iterator[Hostile]:
    """What is not there, and what is there but not for this method."""
    for path in PATHS:
        for method in (b"GET", b"POST"):
            named = method == b"POST" and path.startswith(b"/v1/models/")
            name = f"{method!r} {path[:40]!r}"
            yield Hostile(name, request(b"{}", path=path, method=method), (405,) if named else (404,))
    for path in ROUTES:
        for method in READ:
            if method == b"GET" and path not in POSTED:
                continue
            name = f"{method!r} {path!r}"
            yield Hostile(name, request(b"", path=path, method=method), (405,), "method_not_allowed")
    for path in RESPONSES:
        yield from _upgrades(path)
        yield Hostile(f"GET {path!r}", request(b"", path=path, method=b"GET"), (426,), "unsupported_operation")
        yield Hostile(f"GET {path!r} and a slash", request(b"", path=path + b"/", method=b"GET"), (404,), "unknown_url")
        for method in (b"PUT", b"PATCH", b"TRACE"):
            yield Hostile(f"{method!r} {path!r}", request(b"", path=path, method=method), (405,), "method_not_allowed")
    for path in OLLAMA:
        for method in READ:
            yield Hostile(f"{method!r} {path!r}", request(b"", path=path, method=method), (405,), "method_not_allowed")


def _upgrades(path: bytes) -> Iterator[Hostile]:
    """What asks for a WebSocket and gets none."""
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: "
    nonce = b"\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=="
    for origin in (b"https://example.com", b"null", b"http://localhost:1", b"", b"http://", b"//localhost"):
        sent = request(b"", upgrade + b"13" + nonce + b"\r\norigin: " + origin, path=path, method=b"GET")
        sent = sent.replace(b"content-length: 0\r\n", b"")
        yield Hostile(f"origin {origin!r} {path!r}", sent, (403,), "cross_site_request")
    for wrong in (b"8" + nonce, b"13, 8" + nonce, b"13", b"13\r\nsec-websocket-key: AAAA", b"13" + nonce + nonce):
        sent = request(b"", upgrade + wrong, path=path, method=b"GET").replace(b"content-length: 0\r\n", b"")
        yield Hostile(f"handshake {wrong[:30]!r} {path!r}", sent, (426,), "unsupported_operation")
    for key in KEYS:
        sent = request(b"", upgrade + b"13" + nonce, path=path, method=b"GET", key=key)
        sent = sent.replace(b"content-length: 0\r\n", b"")
        yield Hostile(f"upgrade with the key {key[:20]!r} {path!r}", sent, (401,), "invalid_api_key")


def doors() -> Iterator[Hostile]:
    """Who is not let in, whatever they ask for."""
    for key in KEYS:
        for path in (b"/v1/chat/completions", b"/v1/models", b"/nowhere"):
            yield Hostile(f"key {key[:20]!r} {path!r}", request(path=path, key=key), (401,), "invalid_api_key")
    for scheme in (b"Basic", b"Token", b"bearer\t", b"Bearer\x20Bearer", b"Digest username="):
        sent = request().replace(b"Bearer", scheme)
        yield Hostile(f"scheme {scheme!r}", sent, (401,), "invalid_api_key")
    for site in (b"cross-site", b"Cross-Site", b"CROSS-SITE"):
        for path in (b"/v1/chat/completions", b"/healthz", b"/docs"):
            sent = request(b"{}", b"sec-fetch-site: " + site, path=path)
            yield Hostile(f"site {site!r} {path!r}", sent, (403,), "cross_site_request")


def media() -> Iterator[Hostile]:
    """Bodies that do not call themselves plain JSON."""
    for path in (b"/v1/chat/completions", b"/v1/explain"):
        for kind in MEDIA_TYPES:
            sent = request(b"{}", path=path, media_type=kind)
            yield Hostile(f"type {kind!r} {path!r}", sent, (415,), "unsupported_media_type")
        for encoding in ENCODINGS:
            sent = request(b"{}", b"content-encoding: " + encoding, path=path)
            yield Hostile(f"encoding {encoding!r} {path!r}", sent, (415,), "unsupported_media_type")
        for encoding in COMPRESSED:
            sent = request(b"{}", b"content-encoding: " + encoding, path=path)
            yield Hostile(f"plain as {encoding!r} {path!r}", sent, (400,), "invalid_content_encoding")
