"""Requests -> one shared aiohttp session -> answers read piece by piece; every fault of the wire as a BackendError.

Nothing is retried: once sent, a request may have run. Redirects are not followed (they would carry the key away),
environment proxies and cookies are not used, and compression is not asked for (a bomb could not be capped).
"""

import asyncio
import ssl
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from gateway.errors import BackendError, BackendProtocolError, BackendTimeout, BackendTruncated, BackendUnavailable

NO_RETRY: Mapping[str, str] = {"x-should-retry": "false"}
ERROR_BODY_CAP = 64 * 1024
# What a wire can fail with. (Every kind of timeout is an OSError.)
_FAULTS: tuple[type[Exception], ...] = (aiohttp.ClientError, HttpProcessingError, OSError, ValueError)


@lru_cache
def gateway_version() -> str:
    """The installed version."""
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "0"


class Answer:
    """The head of a backend's answer, and its body piece by piece. Header names are lower case."""

    def __init__(self, response: aiohttp.ClientResponse, max_size: int) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._left = max_size

    async def read(self) -> bytes:
        """All bytes that have arrived, at least one; empty at the end. Raises BackendError."""
        try:
            piece = await self._response.content.readany()
        except _FAULTS as error:
            raise _body_fault(error) from error
        self._left -= len(piece)
        if self._left < 0:
            raise BackendError("The backend's answer is larger than allowed.", code="upstream_response_too_large")
        return piece

    def is_broken(self) -> bool:
        """Whether a waiting `read` would wait for ever: aiohttp reports broken framing to the connection, but not to
        the body that is being read."""
        connection = self._response.connection
        return (
            connection is not None and connection.protocol is not None and connection.protocol.exception() is not None
        )

    async def read_error(self) -> bytes:
        """The beginning of an error's body; an error whose body breaks off is still that error."""
        body = b""
        try:
            while len(body) < ERROR_BODY_CAP and (piece := await self.read()):
                body += piece
        except BackendError:
            pass
        return body[:ERROR_BODY_CAP]

    async def settle(self, seconds: float) -> None:
        """Give the framing's last bytes a moment to arrive, so that the connection can be used again."""
        if self._response.content.at_eof():
            return
        try:
            async with asyncio.timeout(seconds):
                while await self.read():
                    pass
        except (TimeoutError, BackendError):
            pass

    def close(self) -> None:
        """Let go. A connection whose answer was not read to its end is closed."""
        self._response.close()


class Transport:
    """The data-plane client. `async with` it; all backends share its session."""

    def __init__(self, max_response: int) -> None:
        self._max_response = max_response

    async def __aenter__(self) -> "Transport":
        # limit=0: admission is the server's business; a hidden queue here would only turn overload into timeouts.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=30, keepalive_timeout=15),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            raise_for_status=False,
            headers={"user-agent": f"dragoman/{gateway_version()}", "accept-encoding": "identity"},
            skip_auto_headers=("content-type", "accept"),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, method: str, url: URL, headers: Mapping[str, str], body: bytes, connect: float) -> Answer:
        """Send a request and wait for the head of its answer; `connect` limits name look-up, TCP and TLS, in seconds.
        How long the head may take is the caller's business. Raises BackendError."""
        try:
            response = await self._session.request(
                method, url, headers=headers, data=body, allow_redirects=False, timeout=_timeout(connect)
            )
        except _FAULTS as error:
            raise _head_fault(error) from error
        answer = Answer(response, self._max_response)
        try:
            _check_head(answer)
        except BackendError:
            answer.close()
            raise
        return answer


@lru_cache(maxsize=64)
def _timeout(connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_read=None)


def _check_head(answer: Answer) -> None:
    if 300 <= answer.status < 400:
        raise BackendError("The backend answered with a redirect, which is never followed.", code="upstream_redirect")
    coding = answer.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise BackendProtocolError(
            "The backend compressed its answer although identity was asked for.", code="upstream_invalid_response"
        )


def _head_fault(error: Exception) -> BackendError:
    """The one place where aiohttp's exceptions before the answer's head become ours."""
    match error:
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return BackendUnavailable(
                "No trusted TLS connection to the backend could be made.", code="upstream_tls_error", headers=NO_RETRY
            )
        case aiohttp.ClientConnectorError():
            return BackendUnavailable("The backend could not be reached.")
        case aiohttp.ConnectionTimeoutError():
            return BackendUnavailable("The backend did not accept a connection in time.")
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return BackendTimeout("The backend did not answer in time.")
        case aiohttp.ClientResponseError() | HttpProcessingError() | ValueError():
            if "chunk" in str(error).lower():
                return truncated()
            return BackendProtocolError("The backend's answer is not HTTP.", code="upstream_protocol_error")
        case _:
            return BackendUnavailable("The backend closed the connection before it answered.")


def _body_fault(error: Exception) -> BackendError:
    """The same for the answer's body."""
    if isinstance(error, TimeoutError):
        return BackendTimeout("The backend stopped sending.")
    return truncated()


def truncated() -> BackendTruncated:
    """The body ended, or its framing broke, before the answer was complete."""
    return BackendTruncated("The backend's answer ended before it was complete.")
