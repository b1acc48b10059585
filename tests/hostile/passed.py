"""Requests to routes that are passed on as they are: paths beside the listed ones, headers and bodies that two readers
could read differently, as a table."""

from collections.abc import Iterator
from typing import Final

from tests.framing.test_body_fields import BOUNDARY, FORM_REFUSED, JSON_REFUSED, form, part
from tests.hostile.attacked_gateway import MAX_BODY, request
from tests.hostile.wire import Hostile

AUDIO: Final = b"/v1/audio/transcriptions"
SCORES: Final = b"/v1/moderations"
PATHS: Final = (
    *(AUDIO + b"/", AUDIO + b"/x", b"/v1//audio/transcriptions", b"//v1/audio/transcriptions", AUDIO + b";x=1"),
    *(b"/v1/audio/../audio/transcriptions", b"/v1/audio/./transcriptions", b"/v1/audio/transcriptions/.."),
    *(b"/v1/audio%2ftranscriptions", b"/v1/audio%2Ftranscriptions", b"/v1/audio%5ctranscriptions"),
    *(b"/v1/%61udio/transcriptions", b"/v1/audio/transcriptions%00", b"/v1/audio/transcriptions%20"),
    *(b"/v1/audio/%2e%2e/audio/transcriptions", b"/V1/audio/transcriptions", b"/v1/audio/Transcriptions"),
    *(b"/v1/audio", b"/audio/transcriptions", b"/v1/audio/transcriptions%3fx", b"/v1/audio\\transcriptions"),
)
TARGETS: Final = (b"http://other.example/v1/audio", b"http://localhost@other.example/v1/audio/transcriptionsx")
METHODS: Final = (b"GET", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"PROPFIND")
QUERIES: Final = (b"?model=m", b"?key=x", b"?/../../x", b"?%0d%0ax:y", b"?" + b"a" * 5000)
MEDIA_TYPES: Final = (
    *(b"application/x-www-form-urlencoded", b"application/json; charset=utf-16", b"application/json; charset=utf-7"),
    *(b"application/json; charset=utf-8; charset=utf-16", b"application/json; boundary=x", b"multipart/form-data"),
    *(b"multipart/form-data; boundary=", b'multipart/form-data; boundary="a b"', b"multipart/form-data; boundary=a=b"),
    *(b"multipart/form-data; boundary=XbX; boundary=YbY", b"multipart/form-data; boundary*=utf-8''XbX"),
    *(b"multipart/form-data; charset=utf-8; boundary=XbX", b"multipart/form-data; boundary=" + b"x" * 71),
)
ENCODINGS: Final = (b"gzip", b"deflate", b"br", b"zstd", b"gzip, identity", b"*")
FORM: Final = b"multipart/form-data; boundary=" + BOUNDARY.encode()


def refused() -> Iterator[Hostile]:
    """All of them, which reach no backend."""
    yield from _heads()
    yield from _bodies()
    yield from _models()


def _heads() -> Iterator[Hostile]:
    for path in PATHS:
        yield Hostile(f"path {path!r}", request(b"{}", path=path), (404,), "unknown_url")
    for target in TARGETS:
        yield Hostile(f"target {target!r}", request(b"{}", path=target), (400, 404))
    for method in METHODS:
        yield Hostile(f"{method!r}", request(b"", path=AUDIO, method=method), (404,), "unknown_url")
    for query in QUERIES:
        yield Hostile(f"query {query[:20]!r}", request(b"{}", path=AUDIO + query), (400,), "invalid_value")
    for kind in MEDIA_TYPES:
        sent = request(b'{"model": "chat"}', path=AUDIO, media_type=kind)
        yield Hostile(f"type {kind[:60]!r}", sent, (415,), "unsupported_media_type")
    for coding in ENCODINGS:
        sent = request(b"{}", b"content-encoding: " + coding, path=AUDIO)
        yield Hostile(f"coding {coding!r}", sent, (415,), "unsupported_media_type")
    for site in (b"sec-fetch-site: cross-site", b"sec-fetch-site: same-site", b"origin: null", b"origin: http://a.b"):
        sent = request(form(part("model", b"chat")), site, path=AUDIO, media_type=FORM)
        yield Hostile(f"a form of {site!r}", sent, (403,), "cross_site_request")
    for line in (b"content-type: text/plain", b"content-length: 3", b"transfer-encoding: chunked"):
        yield Hostile(f"a second {line!r}", request(b"{}", line, path=AUDIO), (400,))
    foreign = request(b"{}", path=AUDIO).replace(b"host: localhost", b"host: other.example")
    yield Hostile("a foreign host", foreign, (421,), "unknown_host")
    yield Hostile("a wrong key", request(b"{}", path=AUDIO, key="no"), (401,), "invalid_api_key")


def _bodies() -> Iterator[Hostile]:
    for name, body in JSON_REFUSED.items():
        yield Hostile(f"JSON: {name}", request(body, path=AUDIO), (400,), "invalid_value")
        yield Hostile(f"JSON without a model: {name}", request(body, path=SCORES), (400,), "invalid_value")
    for name, body in FORM_REFUSED.items():
        code = "invalid_value" if body else "missing_required_parameter"
        yield Hostile(f"form: {name}", request(body, path=AUDIO, media_type=FORM), (400,), code)
    large = MAX_BODY + 1
    long = request(b"", path=AUDIO).replace(b"content-length: 0", b"content-length: %d" % large)
    yield Hostile("a length above the limit", long, (413,), "request_too_large")
    yield Hostile("a length of 30 digits", long.replace(b"%d" % large, b"9" * 30), (400, 413))
    chunks = request(b"", path=AUDIO).replace(b"content-length: 0", b"transfer-encoding: chunked")
    piece = b'{"model": "chat", "x": "' + b"x" * large
    yield Hostile("chunks above the limit", chunks + b"%x\r\n%b\r\n" % (len(piece), piece), (413,), "request_too_large")
    # The backend is reached here, and gets less than a whole body; it may have answered before that is seen.
    two = b'{"model": "chat", "x": "' + b"x" * (MAX_BODY - 100) + b'", "model": "m"}'
    yield Hostile("a second model far behind", request(two, path=AUDIO), (400, 404))


def _models() -> Iterator[Hostile]:
    yield Hostile("no model", request(b"{}", path=AUDIO), (400,), "missing_required_parameter")
    yield Hostile("no body", request(b"", path=AUDIO), (400,), "missing_required_parameter")
    for model in (b"m", b"agent", b"g"):
        body = b'{"model": "%b"}' % model
        yield Hostile(f"the model {model!r}", request(body, path=AUDIO), (400,), "unsupported_operation")
    for model in (b"nothing", b"", b"../x", b"chat\\u0000", b"chat\\n", b"http://other.example"):
        yield Hostile(
            f"the model {model!r} in JSON", request(b'{"model": "%b"}' % model, path=AUDIO), (404,), "model_not_found"
        )
