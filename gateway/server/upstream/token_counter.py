"""Asks backends how many tokens a request has, for the routes that count."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from gateway.adapter import BackendRequest, CountingAdapter
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendProtocolError, BackendTimeout
from gateway.exchange import Exchange
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.credentials import with_credential
from gateway.server.upstream.transport import Transport
from gateway.settings import ModelSettings

# A client that asks for a count waits for it before it sends the request itself.
LIMIT_S: Final = 5.0
# A backend without a counter is not asked again for this time.
ABSENT_S: Final = 600.0
_ABSENT: Final = frozenset({404, 405, 501})
# An answer may list the tokens beside their number.
MOST_BYTES: Final = 16 * 2**20


class TokenCounter:
    """The counters of all backends. A request to a counter counts for the concurrency limit of its backend."""

    def __init__(self, transport: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport = transport
        self._clock = clock
        # Until when no count is asked for these models.
        self._absent: WeakKeyDictionary[Backend, dict[str, float]] = WeakKeyDictionary()

    async def count(self, backend: Backend, route: ModelSettings, conversation: Conversation) -> int | None:
        """Returns how many tokens the request has that the backend would get for this conversation, as its own counter
        says; None where it has none. Raises GatewayError: InvalidRequest where no request can be sent, BackendError for
        any other answer than a count, BackendTimeout after `LIMIT_S` seconds."""
        adapter = backend.adapter
        if not isinstance(adapter, CountingAdapter) or not adapter.counts:
            return None
        if self._absent.get(backend, {}).get(conversation.model, 0.0) > self._clock():
            return None
        request = await asyncio.to_thread(_count_request, backend, adapter, route, conversation)
        try:
            async with asyncio.timeout(LIMIT_S):
                with backend.concurrency:
                    return adapter.decode_count(await self._answer(backend, request, conversation.model))
        except TimeoutError:
            raise BackendTimeout(f"The backend did not count the tokens within {LIMIT_S:g} s.") from None

    async def _answer(self, backend: Backend, request: BackendRequest, model: str) -> bytes:
        answer = await with_credential(backend.credential, lambda headers: self._send(backend, request, headers))
        try:
            if answer.status == 200:
                return await _body(answer)
            if answer.status in _ABSENT:
                self._note_absence(backend, model)
            body = await answer.read_error()
            raise backend.adapter.decode_error(answer.status, answer.headers, body)
        finally:
            answer.close()

    def _note_absence(self, backend: Backend, model: str) -> None:
        now = self._clock()
        # Clients choose names of models: none stays longer than it counts.
        absent = {name: until for name, until in self._absent.get(backend, {}).items() if until > now}
        self._absent[backend] = {**absent, model: now + ABSENT_S}

    async def _send(self, backend: Backend, request: BackendRequest, credential: Mapping[str, str]) -> BackendResponse:
        timeouts = backend.timeouts
        head = backend.head(request, credential)
        return await self._transport.send(head, request.body, timeouts.connect, ping=timeouts.ping)


def _count_request(
    backend: Backend, adapter: CountingAdapter, route: ModelSettings, conversation: Conversation
) -> BackendRequest:
    exchange = Exchange(backend.adapter, conversation, route.policy, None, backend.state_label, route.context_length)
    return adapter.count_request(exchange.request)


async def _body(answer: BackendResponse) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := await answer.read():
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise BackendProtocolError(
                "The backend's count of tokens is too large.", code="upstream_response_too_large"
            )
    return b"".join(pieces)
