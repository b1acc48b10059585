"""Combines the model names of the settings with those of the backend behind `"*"` for `GET /v1/models`, and finds what
the lists of backends say of models.

A backend is requested through httpx, apart from the data plane, by one request at a time, for at most `LIMIT_S`
seconds and `MOST_BYTES`; its response is cached for a minute, a failure for a few seconds. One that is asked only for
what it says of the models of the settings has `FACTS_LIMIT_S`, since clients wait for as little as three seconds, and
its failure is cached as long as its response.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import msgspec

from gateway.adapter import BackendModel, ListingAdapter
from gateway.core.backend_status import public_text
from gateway.core.errors import (
    BackendError,
    BackendProtocolError,
    BackendTimeout,
    BackendUnavailable,
    GatewayError,
    InvalidRequest,
    SettingsError,
)
from gateway.core.model_facts import SMALLEST_WINDOW
from gateway.server.log.logger import LOGGER
from gateway.server.upstream.backend_faults import backend_error
from gateway.server.upstream.backend_response import ERROR_BODY_CAP
from gateway.server.upstream.backends import Backend, Backends
from gateway.server.upstream.http.errors import TLSError, TooLarge, Truncated
from gateway.server.upstream.http.tls import BACKEND_CONTEXTS, tls_context
from gateway.server.upstream.http1.content_coding import ContentDecoder
from gateway.server.upstream.transport import gateway_version

if TYPE_CHECKING:
    import httpx

KEPT_S: Final = 60
FAILURE_KEPT_S: Final = 5
LIMIT_S: Final = 10
FACTS_LIMIT_S: Final = 2
MOST_BYTES: Final = 4 * 2**20
MOST_NAMES: Final = 10_000
LONGEST_NAME: Final = 200


class Names(msgspec.Struct, frozen=True):
    """The names to list. `missing` says why those of the backend behind `"*"` are not among them."""

    names: tuple[str, ...]
    missing: str | None = None


class _Listed:
    """The last response of one backend."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.due = 0.0
        # The refresh of the token that the list waits for, or has stopped to wait for.
        self.refresh: asyncio.Task[Mapping[str, str]] | None = None
        self.result: Mapping[str, BackendModel] | GatewayError = {}


class ModelLists:
    """The model lists of backends, each cached for a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._listed: WeakKeyDictionary[Backend, _Listed] = WeakKeyDictionary()

    async def names(self, backends: Backends) -> Names:
        """Returns the names that the settings list, and those of the backend behind `"*"`. If the settings list none
        and the backend's list fails, raises the GatewayError of that failure."""
        if backends.any is None:
            return Names(backends.models)
        entry, backend = backends.any
        if entry.name is not None:
            return Names(_once((*backends.models, entry.name)))
        result = await self._result(backend)
        if not isinstance(result, GatewayError):
            return Names(_once((*backends.models, *result)))
        if not backends.models:
            # A copy of the cached exception: a raised exception keeps the frames it went through.
            raise type(result)(result.message, status=result.status, code=result.code)
        return Names(backends.models, result.message)

    async def entries(self, backends: Backends, names: Iterable[str]) -> Mapping[str, BackendModel]:
        """Returns the entries of these models in the lists of their backends, which are asked at once. A backend that
        has no list, or does not answer, says nothing of its models."""
        routes = {name: backends.find(name) for name in names}
        at = {name: (found[1], found[0].name or name) for name, found in routes.items() if found is not None}
        listing = list(dict.fromkeys(backend for backend, _ in at.values() if _lists(backend)))
        wide = None if backends.any is None else backends.any[1]
        results = await asyncio.gather(*[self._result(one, facts_only=one is not wide) for one in listing])
        listed = dict(zip(listing, results, strict=True))
        found: dict[str, BackendModel] = {}
        for name, (backend, own) in at.items():
            models = listed.get(backend)
            if isinstance(models, Mapping) and own in models:
                found[name] = models[own]
        return found

    async def _result(self, backend: Backend, facts_only: bool = False) -> Mapping[str, BackendModel] | GatewayError:
        listed = self._listed.setdefault(backend, _Listed())
        async with listed.lock:
            if self._clock() >= listed.due:
                limit = FACTS_LIMIT_S if facts_only else LIMIT_S
                refreshing = backend.credential.ready is None
                try:
                    models = await _fetch_within(limit, backend, listed)
                    listed.result, life = {model.name: model for model in models}, KEPT_S
                except GatewayError as error:
                    words = backend.redact(public_text(error.words)) if isinstance(error, BackendError) else ""
                    LOGGER.log(
                        logging.INFO if facts_only else logging.WARNING,
                        "the models of the backend %s are not listed: %s said=%r",
                        backend.name,
                        error.message,
                        words,
                    )
                    # Of a token that comes late nothing is known yet.
                    listed.result, life = error, KEPT_S if facts_only and not refreshing else FAILURE_KEPT_S
                listed.due = self._clock() + life
            return listed.result


async def _fetch_within(limit: float, backend: Backend, listed: _Listed) -> tuple[BackendModel, ...]:
    """Returns the models of a backend, whose token may have to be refreshed first. A refresh that takes longer goes on:
    if it was cancelled, the token that the issuer has given for the next one might be lost."""
    try:
        async with asyncio.timeout(limit):
            headers = backend.credential.ready
            if headers is None:
                if listed.refresh is None or listed.refresh.done():
                    listed.refresh = asyncio.ensure_future(backend.credential.headers())
                headers = await asyncio.shield(listed.refresh)
            return await fetch_models(backend, headers, limit)
    except TimeoutError:
        raise _late(limit) from None


def _late(limit: float) -> BackendTimeout:
    return BackendTimeout(f"The backend did not send its list of models within {limit} s.")


def _lists(backend: Backend) -> bool:
    adapter = backend.adapter
    return isinstance(adapter, ListingAdapter) and adapter.models_path is not None


async def fetch_models(
    backend: Backend, credential: Mapping[str, str], limit: float = LIMIT_S
) -> tuple[BackendModel, ...]:
    """Requests the list of models with these headers of a credential, for so many seconds. Raises InvalidRequest where
    the wire has no list of models, BackendError where the request for it fails."""
    # Imported with the first list that is asked for.
    import httpx

    adapter = backend.adapter
    if not isinstance(adapter, ListingAdapter) or adapter.models_path is None:
        raise InvalidRequest(
            f"Any model name is passed on to the backend {backend.name!r}, which has no list of its models.",
            status=404,
            code="models_not_listed",
        )
    try:
        async with asyncio.timeout(limit):
            body = await _read(backend, adapter, adapter.models_path, credential)
    except TimeoutError:
        raise _late(limit) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        if _is_of_tls(error):
            raise backend_error(TLSError()) from None
        # Its text may contain the address, and so may its cause.
        reason = type(error).__name__
        raise BackendUnavailable(f"The request for the backend's list of models failed ({reason}).") from None
    models = [BackendModel(one) if isinstance(one, str) else one for one in adapter.decode_models(body)[:MOST_NAMES]]
    return tuple([_with_window(backend.name, _with_shown_title(model)) for model in models if _is_name(model.name)])


def _is_of_tls(error: BaseException) -> bool:
    """Returns whether TLS is the cause of an error of httpx, which wraps it more than once."""
    while (cause := error.__cause__ or error.__context__) is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        error = cause
    return False


def _with_shown_title(model: BackendModel) -> BackendModel:
    """Returns the model without a name for people that a terminal should not show."""
    title = model.facts.display_name
    if title is None or _is_name(title):
        return model
    return msgspec.structs.replace(model, facts=msgspec.structs.replace(model.facts, display_name=None))


def _with_window(backend: str, model: BackendModel) -> BackendModel:
    """Returns the model without a window that no model has."""
    if model.context_length is None or model.context_length >= SMALLEST_WINDOW:
        return model
    told = "the backend %s says of the model %r that its window has %d tokens, which is not believed"
    LOGGER.info(told, backend, model.name, model.context_length)
    return msgspec.structs.replace(model, context_length=None)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and text.isprintable()


async def _read(backend: Backend, adapter: ListingAdapter, path: str, credential: Mapping[str, str]) -> bytes:
    import httpx

    headers = {
        **adapter.models_headers,
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"dragoman/{gateway_version()}",
        # Each list has a connection of its own; httpx would add the header behind a signature.
        "connection": "close",
        **backend.headers,
        **credential,
    }
    url = backend.url(path)
    if backend.signs:
        headers |= backend.sign("GET", url, {"host": url.address.authority, **headers}, b"")
    # As requests for answers are sent; httpx itself takes only ASCII.
    lines = {name.encode("latin-1"): value.encode("latin-1") for name, value in headers.items()}
    body = b""
    async with (
        httpx.AsyncClient(verify=_context(backend), timeout=LIMIT_S, trust_env=False, follow_redirects=False) as client,
        # httpx would write some paths in another way, and a signature is that of what is sent.
        client.stream(
            "GET",
            f"{url.address.scheme}://{url.address.authority}",
            headers=lines,
            extensions={"target": url.path.encode("ascii")},
        ) as answer,
    ):
        if answer.status_code != 200:
            raise await _refused(backend, answer)
        async for piece in answer.aiter_raw():
            body += piece
            if len(body) > MOST_BYTES:
                raise _too_large()
    return _plain(body, answer.headers.get("content-encoding", "").strip().lower())


def _context(backend: Backend) -> ssl.SSLContext:
    """Returns the context of connections for answers, in which the backend's certificate is verified."""
    files = backend.settings.tls
    try:
        return tls_context("http/1.1") if files is None else BACKEND_CONTEXTS.context(files, "http/1.1")
    except SettingsError as error:
        raise backend_error(TLSError()) from error


def _plain(body: bytes, coding: str) -> bytes:
    """The body without the coding that a backend may give it although identity was asked for."""
    if coding in ("", "identity"):
        return body
    try:
        decoder = ContentDecoder(coding, MOST_BYTES)
        plain = decoder.feed(body)
        while decoder.pending:
            plain += decoder.feed()
        decoder.close()
    except TooLarge:
        raise _too_large() from None
    except (KeyError, Truncated):
        raise BackendProtocolError(
            "The backend's list of models is compressed in a way that cannot be read.", code="upstream_invalid_response"
        ) from None
    return plain


def _too_large() -> BackendError:
    return BackendProtocolError("The backend's list of models is too large.", code="upstream_response_too_large")


async def _refused(backend: Backend, answer: "httpx.Response") -> BackendError:
    """The error of a status other than 200, with the backend's own words for the log. A redirect is not read: it may
    hold a credential."""
    status = answer.status_code
    code = "upstream_auth_error" if status in (401, 403) else "upstream_error"
    error = BackendError(
        f"The backend responded with status {status} to the request for its list of models.", code=code
    )
    if not 300 <= status < 400 and "content-encoding" not in answer.headers:
        body = await _beginning(answer)
        words = backend.adapter.decode_error(status, dict(answer.headers), body).words
        error.words = words or body.decode("utf-8", "replace")
    return error


async def _beginning(answer: "httpx.Response") -> bytes:
    import httpx

    body = b""
    try:
        async for piece in answer.aiter_raw():
            body += piece
            if len(body) >= ERROR_BODY_CAP:
                break
    except httpx.HTTPError:
        pass  # a broken body does not change the error
    return body[:ERROR_BODY_CAP]


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
