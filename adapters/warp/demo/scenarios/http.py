"""Defines scenarios that fail, temporarily or permanently, with an HTTP status instead of a stream."""

from collections.abc import Mapping
from typing import Final

from adapters.warp.demo.scenario import Expect, WarpScenario, failure
from adapters.warp.demo.scenarios.text import HELLO
from adapters.warp.demo.steps import BEGIN, COMMIT, PRELUDE, finish, text_message
from gateway.demo.player.playback import FOREVER, Response

_OK: Final = ((*PRELUDE, BEGIN, text_message(HELLO), COMMIT, finish()),)
_JSON: Final = "application/json"
_CREDITS: Final = b'{"error":"out of credits","userDisplayMessage":"You are out of credits until the 1st."}'
_PAGE: Final = b"<!doctype html><title>403</title><h1>Forbidden</h1><script>alert(1)</script>"


def _answer(status: int, body: bytes = b"", kind: str = _JSON, headers: Mapping[str, str] | None = None) -> Response:
    return Response((body,) if body else (), status, {"content-type": kind, **(headers or {})})


def _always(kind: str, about: str, answer: Response, status: int, code: str | None = None) -> WarpScenario:
    return WarpScenario(about=about, instead=(answer,), expect=failure(kind, status, code))


def _once(kind: str, about: str, answer: Response, status: int, code: str | None = None) -> WarpScenario:
    return WarpScenario(about=about, instead=(answer,), turns=_OK, expect=failure(kind, status, code))


HTTP: Final[dict[str, WarpScenario]] = {
    "quota_http": _always(
        "quota",
        "429 with the code for an exhausted quota and a message for the user",
        _answer(429, _CREDITS, headers={"X-Warp-Error-Code": "OUT_OF_CREDITS"}),
        429,
        "insufficient_quota",
    ),
    "quota_http_text": _always(
        "quota",
        "429 with the older wording for an exhausted quota",
        _answer(429, b"No AI requests remaining", "text/plain"),
        429,
        "insufficient_quota",
    ),
    "http_401_refresh": WarpScenario(
        about="401 until the bearer token is one that /proxy/token has issued",
        turns=_OK,
        needs_refresh=True,
        expect=Expect(text=HELLO),
    ),
    "http_401": _always(
        "credential", "401 for any bearer token", _answer(401, b'{"error":"invalid token"}'), 502, "upstream_auth_error"
    ),
    "http_429_retry_after": _once(
        "429",
        "429 with Retry-After in seconds, then a response",
        _answer(429, b'{"error":"too many requests"}', headers={"Retry-After": "2"}),
        429,
    ),
    "http_429_retry_date": _once(
        "429",
        "429 with Retry-After as a date, then a response",
        _answer(429, b'{"error":"too many requests"}', headers={"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}),
        429,
    ),
    "http_429_endless": _always("429", "429 every time", _answer(429, headers={"Retry-After": "1"}), 429),
    "http_403_html": _always(
        "credential", "403 with a web page", _answer(403, _PAGE, "text/html"), 502, "upstream_auth_error"
    ),
    "http_500_then_ok": _once(
        "500", "500, then a response", _answer(500, b"boom", "text/plain"), 502, "upstream_error"
    ),
    "http_503_then_ok": _once("503_bare", "503, then a response", _answer(503), 503, "upstream_overloaded"),
    "http_404": _always("404", "404", _answer(404, b'{"error":"unknown model"}'), 404, "model_not_found"),
    "http_404_url": _always(
        "unknown_url", "404 of a wrong address", _answer(404, b'{"error":"not found"}'), 502, "upstream_unknown_url"
    ),
    "http_413": _always("413", "413", _answer(413), 413, "request_too_large"),
    "wrong_content_type": _always(
        "page",
        "200 with a web page",
        _answer(200, b"<html>hello</html>", "text/html"),
        502,
        "upstream_invalid_response",
    ),
    "stall_headers": WarpScenario(
        about="silence instead of a status",
        instead=(Response(hold=FOREVER),),
        expect=failure("no_head", 504, "upstream_timeout"),
        waits=True,
    ),
    "empty_body": _always(
        "empty",
        "200 with the right type and an empty body",
        _answer(200, kind="text/event-stream"),
        502,
        "upstream_invalid_response",
    ),
}
