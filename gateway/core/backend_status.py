"""Maps the HTTP status of a backend to the error that the client receives: one table for every adapter.

A status that reports the client's own mistake is kept. The client cannot correct a rejected gateway credential, so the
error is a 502 that says so and asks for no retry. The gateway itself retries none of these.
"""

import math
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final, assert_never

import msgspec

from gateway.core.context_length import (
    CONTEXT_LENGTH_EXCEEDED,
    OutputLimit,
    OutputOverflow,
    Overflow,
    TooLong,
    read_too_long,
)
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTimeout, Kind, OwnWords
from gateway.core.notices import Notice, NoticeRule
from gateway.core.secrets import redact_keys

MAX_MESSAGE: Final = 300

# For an overloaded backend that sends no delay.
SOON: Final[Mapping[str, str]] = {"retry-after": "1"}
NO_RETRY: Final[Mapping[str, str]] = {"x-should-retry": "false"}
# These codes mean the same for every backend; any other code counts as the backend's own text.
KNOWN_CODES: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "rate_limit_exceeded", CONTEXT_LENGTH_EXCEEDED}
)
# The statuses with which providers say that a request is too long.
_TELL_LENGTH: Final = frozenset({400, 413, 422})
# These statuses ask for a later request.
_BUSY: Final = frozenset({429, 503})
# The words with which providers refuse a key: as code, type or status of an error, and at the beginning of its message.
_KEY_KINDS: Final = frozenset(
    {
        "auth_error",
        "authentication_error",
        "authentication_failed",
        "invalid_api_key",
        "invalid_authentication",
        "invalid_authentication_error",
        "invalidapikey",
        "permission_denied",
        "permission_error",
        "unauthenticated",
        "unauthorized",
        "wrong_api_key",
    }
)
_KEY_WORDS: Final = re.compile(
    r"(?:(?:incorrect|invalid|wrong|expired|missing|no) (?:x-)?(?:api|subscription)[ -]key"
    r"|(?:the |your )?api key (?:is )?(?:not valid|invalid|incorrect|wrong|expired|missing)"
    r"|(?:invalid )?authentication (?:fails|failed|error|token|parameter)|invalid authentication|身份验证失败"
    r"|no auth credentials|access denied due to invalid subscription key|unauthorized\W*$)",
    re.IGNORECASE,
)
_UNAUTHORIZED: Final = 401
# What servers and providers say about a path that they do not serve (OpenAI, Groq, Mistral, Express), and about a model
# (OpenRouter calls it an endpoint, Azure a deployment; Connect's code says that a method of the service found nothing).
_URL_WORDS: Final = re.compile(
    r"invalid url|unknown(?: request)?[ _]url|requested url|url\.not_found|no route matched|cannot (?:post|get) /"
    r"|unexpected endpoint|(?:file|page|path|route) not found|no such (?:path|route)",
    re.IGNORECASE,
)
# What a request may refer to at its provider: a file, a cached content, a response, an item.
_RESOURCE_WORDS: Final = re.compile(
    r"file not found: ?\S|no such (?:file )?object|requested entity|cached ?content|previous response"
    r"|(?:item|response|file)s? with id",
    re.IGNORECASE,
)
_MODEL_WORDS: Final = re.compile(
    r"\bmodels?(?:\b|_)|deployment|no endpoints found|\"code\":\s*\"not_found\"", re.IGNORECASE
)
# An exhausted quota and a rate limit both answer with 429, but only the rate limit ends by waiting.
_FINAL_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class _Fault(msgspec.Struct, frozen=True):
    """One row: what the client receives.

    `quotes`: the backend's own message may be passed on; `keeps_code`: its code; `retries`: a retry may succeed.
    """

    status: int
    kind: Kind
    code: str
    sentence: str
    error: type[BackendError] = BackendRejected
    quotes: bool = False
    keeps_code: bool = False
    retries: bool = True


def _callers(status: int, code: str, sentence: str, *, keeps_code: bool = True) -> _Fault:
    return _Fault(status, "invalid_request", code, sentence, quotes=True, keeps_code=keeps_code)


_BAD_REQUEST: Final = "The backend refused the request."
_TOO_SLOW: Final = _Fault(
    504, "upstream", "upstream_timeout", "The backend did not respond in time.", error=BackendTimeout
)
_OVERLOADED: Final = _Fault(503, "upstream", "upstream_overloaded", "The backend is overloaded.")
_CREDENTIAL: Final = _Fault(
    502, "upstream", "upstream_auth_error", "The backend refused the gateway's credential.", retries=False
)

# A 404 that names no model.
_ADDRESS: Final = _Fault(
    502,
    "upstream",
    "upstream_unknown_url",
    "The backend knows no such address: its base_url is wrong, or the path behind it",
    retries=False,
)

FAULTS: Final[Mapping[int, _Fault]] = {
    400: _callers(400, "invalid_value", _BAD_REQUEST),
    401: _CREDENTIAL,
    402: _Fault(
        402,
        "rate_limit",
        "insufficient_quota",
        "The backend's account has no credit left.",
        quotes=True,
        retries=False,
    ),
    403: _CREDENTIAL,
    404: _callers(404, "model_not_found", "The backend does not serve this model.", keeps_code=False),
    408: _TOO_SLOW,
    409: _callers(409, "conflict", "The backend is busy with a request that conflicts with this one."),
    413: _callers(413, "request_too_large", "The request is too large for the backend."),
    422: _callers(422, "invalid_value", _BAD_REQUEST),
    429: _Fault(
        429,
        "rate_limit",
        "rate_limit_exceeded",
        "The backend accepts no more requests at the moment.",
        quotes=True,
        keeps_code=True,
    ),
    503: _OVERLOADED,
    504: _TOO_SLOW,
    522: _TOO_SLOW,
    524: _TOO_SLOW,
    529: _OVERLOADED,
}

# Every other status, by hundreds: a 2xx without a usable response, a redirect, an error only the gateway can correct.
_ELSE: Final[Mapping[int, _Fault]] = {
    2: _Fault(
        502,
        "upstream",
        "upstream_invalid_response",
        "The backend reported success but sent no response.",
        error=BackendProtocolError,
    ),
    3: _Fault(
        502,
        "upstream",
        "upstream_redirect",
        "The backend sent a redirect; redirects are not followed.",
        retries=False,
    ),
    4: _Fault(502, "upstream", "upstream_error", _BAD_REQUEST, retries=False),
    5: _Fault(502, "upstream", "upstream_error", "The backend failed."),
}


def status_error(
    status: int,
    headers: Mapping[str, str],
    *,
    message: str | None = None,
    code: str | None = None,
    fields: JsonObject = EMPTY,
) -> BackendError:
    """Returns the error for a response with this status, for the caller to raise. Header names are lower case.

    `message` and `code` are what the adapter found in the body, `fields` those of the error object. The message is
    passed on, cut and without secrets, only where the client can act on it; a failure of the backend itself gets a
    fixed sentence. A prompt that is too long is a 400 `context_length_exceeded` in words that every client knows.

    A key that a 400 refuses in the words of its provider is a 401.

    `retry-after` and `retry-after-ms` are kept when they are well formed; where a retry may succeed, a 429 and a 503
    have a `retry-after` of whole seconds, at least one: Codex gives up at once without it.
    """
    too_long = read_too_long(message or "", code, fields) if status in _TELL_LENGTH else None
    if too_long is None:
        return _status_error(_meant(status, message, code, fields) or status, headers, message, code)
    return _too_long_error(too_long, message, f"; it said: {public_text(message)}" if message else "")


def unknown_url(path: str, words: str) -> BackendError:
    """Returns the error for a 404 at this path below the backend's `base_url`; `words` are those of the backend."""
    message = f"{_ADDRESS.sentence} ({public_text(path)})."
    error = BackendRejected(message, status=_ADDRESS.status, kind=_ADDRESS.kind, code=_ADDRESS.code, headers=NO_RETRY)
    error.words = words
    return error


def names_resource(body: str) -> bool:
    """Returns whether the body of a 404 is about something that the request refers to, which the client can mend."""
    return _RESOURCE_WORDS.search(body) is not None


def names_model(body: str, model: str) -> bool:
    """Returns whether the body of a 404 is about a model: it names this one, or speaks of one. A page, and words about
    the URL, which may hold the model's name, are about the address."""
    if body.lstrip().startswith("<") or _URL_WORDS.search(body):
        return False
    return bool(_MODEL_WORDS.search(body)) or (
        model != "" and re.search(rf"(?<![\w.-]){re.escape(model)}(?![\w-])", body) is not None
    )


def reported_error(
    status: int | None, *, message: str | None = None, code: str | None = None, fields: JsonObject = EMPTY
) -> BackendError:
    """Returns the error for one inside a response with status 200. It gets the status that it stands for, if that is
    one of an error; otherwise 502, or 400 for a prompt that is too long."""
    status = _meant(status, message, code, fields)
    tells = status is None or status in _TELL_LENGTH
    too_long = read_too_long(message or "", code, fields) if tells else None
    if too_long is not None:
        # The client may have begun to read: the log alone has the backend's words.
        return _too_long_error(too_long, message, " inside its response")
    if status is not None and 400 <= status <= 599:
        return _status_error(status, {}, message, code)
    error = BackendRejected("The backend reported an error in its response.")
    error.words = message or ""
    return error


def stated_status(code: Json) -> int | None:
    """Returns the status that an error names as its code, as a number or in digits. None: the code is none."""
    if isinstance(code, str) and len(code) == 3 and code.isascii() and code.isdigit():
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 else None


def _meant(status: int | None, message: str | None, code: str | None, fields: JsonObject) -> int | None:
    """Returns the status, or that of a refused key for an error that says so under no status or under 400."""
    if status not in (None, 400):
        return status
    kinds = [code, fields.get("type"), fields.get("status")]
    refused = not _KEY_KINDS.isdisjoint([kind.lower() for kind in kinds if isinstance(kind, str)])
    return _UNAUTHORIZED if refused or (message and _KEY_WORDS.match(message)) else status


def _too_long_error(too_long: TooLong, message: str | None, ending: str) -> BackendError:
    """Returns the error for a request that is too long, in the words on which clients shorten it. The detail of its
    notice has this ending."""
    error: BackendError
    match too_long:
        case Overflow():
            error = _rejected(too_long.sentence, CONTEXT_LENGTH_EXCEEDED, "messages")
        case OutputOverflow():
            error = _rejected(too_long.sentence, "invalid_value", "max_tokens")
        case OutputLimit():
            error = _status_error(400, {}, message, None)
            error.param = "max_tokens"
        case _ as never:
            assert_never(never)
    rule: NoticeRule = "CONTEXT_OVERFLOW" if isinstance(too_long, Overflow) else "MAX_TOKENS_REFUSED"
    detail = f"the backend refused the length of the request{ending}"
    error.notices = (Notice("backend", "failed", rule, detail, level="error"),)
    error.too_long = too_long
    error.words = message or ""
    return error


def _rejected(sentence: str, code: str, param: str) -> BackendRejected:
    return BackendRejected(sentence, status=400, kind="invalid_request", code=code, param=param)


def _status_error(status: int, headers: Mapping[str, str], message: str | None, code: str | None) -> BackendError:
    fault = FAULTS.get(status) or _ELSE.get(status // 100) or _ELSE[5]
    quoted = public_text(message) if message and fault.quotes else ""
    kept = code if code and fault.keeps_code and _CODE.fullmatch(code) else fault.code
    final = not fault.retries or kept in _FINAL_CODES
    error = fault.error(
        quoted or fault.sentence,
        status=fault.status,
        kind=fault.kind,
        code=kept,
        headers={**_patience(headers), **NO_RETRY} if final else _delay(fault.status, _patience(headers)),
        notices=_credential_notice(status) if fault is _CREDENTIAL else (),
    )
    error.words = message or ""
    if fault.quotes:
        error.own_words = OwnWords(fault.sentence, kept if kept in KNOWN_CODES else fault.code)
    return error


def _credential_notice(status: int) -> tuple[Notice, ...]:
    detail = f"the backend refused the gateway's credential ({status}); only the operator can correct this"
    return (Notice("backend", "failed", "BACKEND_CREDENTIAL", detail, level="error"),)


def redact_error(error: BackendError, redact: Callable[[str], str]) -> None:
    """Redacts the secrets in every text of an error that may come from the backend."""
    error.message = redact(error.message)
    error.code = error.code and redact(error.code)
    error.param = error.param and redact(error.param)
    error.words = redact(public_text(error.words))
    error.notices = tuple([msgspec.structs.replace(notice, detail=redact(notice.detail)) for notice in error.notices])


def public_text(text: str) -> str:
    """Returns a backend's text as a client may read it: one line of at most 300 printable characters, keys redacted.

    The text is cut before it is searched, so that a huge text costs nothing; a secret at the cut is redacted, too.
    """
    cut = len(text) > 4 * MAX_MESSAGE
    text = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * MAX_MESSAGE]).split())
    text = redact_keys(text)
    return text[: MAX_MESSAGE - 1] + "…" if cut or len(text) > MAX_MESSAGE else text


_CODE: Final = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def _patience(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns `retry-after` in seconds or as an HTTP date and `retry-after-ms` as a number; drops malformed values."""
    kept: dict[str, str] = {}
    for name in ("retry-after", "retry-after-ms"):
        value = headers.get(name, "").strip()
        if _SECONDS.fullmatch(value) or (name == "retry-after" and _is_http_date(value)):
            kept[name] = value
    return kept


def _delay(status: int, patience: dict[str, str]) -> dict[str, str]:
    """Returns the delay of an error after which a retry may succeed: for a backend that is busy in whole seconds, too,
    and at least one."""
    if status not in _BUSY:
        return patience
    seconds = patience.get("retry-after")
    if seconds is None:
        seconds = str(float(patience.get("retry-after-ms", "0")) / 1000)
    elif not _SECONDS.fullmatch(seconds):
        return patience
    return patience | {"retry-after": str(max(1, math.ceil(float(seconds))))}


def _is_http_date(value: str) -> bool:
    if len(value) > 40 or not value.isascii() or not value.isprintable():
        return False
    try:
        parsedate_to_datetime(value)
    # A year of many digits overflows.
    except (ValueError, OverflowError):
        return False
    return value.endswith("GMT")
