"""Sends requests through the gateway's own front, as requests of the inspector: those of clients once more, and those
that are written in the page."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Message, Scope

from gateway.core.errors import InvalidRequest
from gateway.recording.recording import Interaction
from gateway.recording.route import request_head
from gateway.server.access.api_keys import INSPECTOR
from gateway.server.http.asgi_writer import through_asgi
from gateway.server.log.logger import LOGGER
from gateway.server.log.request_id import request_id
from gateway.server.telemetry.request_context import RequestContext

if TYPE_CHECKING:
    from gateway.server.inspect.sent_answer import AnswerEnded, AnswerPiece, SentAnswer

# These belong to the client's connection and to its request; the new request has its own.
_OWN: Final = frozenset({b"content-length", b"host", b"x-request-id"})


class InspectorClient:
    """The inspector as the client of one request, with an ASGI server's end of it: `receive` and `send`. `answer` is
    told what the answer says; None: nobody waits for it."""

    memory: None = None
    steering: None = None

    def __init__(self, body: bytes, answer: "SentAnswer | None" = None) -> None:
        self._unread = [body]
        self._answer = answer
        self._gone = asyncio.Event()

    def join(self, context: RequestContext) -> None:
        """Names the client of a request, and observes its answer."""
        context.key = INSPECTOR
        if self._answer is not None:
            context.observers = context.observers.joined(self._answer)

    def leave(self) -> None:
        """Disconnects, as a client does that wants no more of the answer."""
        self._gone.set()
        if self._answer is not None:
            self._answer.close()

    async def receive(self) -> Message:
        if self._unread:
            return {"type": "http.request", "body": self._unread.pop()}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Takes the bytes of the answer, which the capture of the request keeps, as fast as they are looked at."""
        if self._answer is not None and not self._gone.is_set():
            await self._answer.ready(len(message.get("body", b"")))


class SentRequests:
    """The requests that the inspector sends. `allowed` is the setting `inspector.send`; `secrets` returns what nobody
    may see in an answer."""

    def __init__(self, allowed: bool, secrets: Callable[[], Sequence[str]]) -> None:
        self.allowed = allowed
        self._secrets = secrets
        self._running: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Raises InvalidRequest where nothing may be sent."""
        if not self.allowed:
            raise InvalidRequest(
                "The inspector sends nothing here: inspector.send is false. Set it to true and restart.",
                status=403,
                code="not_sent",
            )

    async def send(self, app: ASGIApp, interaction: Interaction) -> str:
        """Begins to send a request, and returns the id of the new one. Nobody waits for its answer: who looks finds it
        among the latest requests. Raises InvalidRequest where nothing may be sent, or the body is not here."""
        self.check()
        body = interaction.body
        if body is None:
            raise InvalidRequest(
                "The body of the request is not here as a whole: it did not arrive, it is larger than "
                "inspector.request_mb, or the request failed while nobody watched.",
                status=404,
                code="unknown_request",
            )
        new_id = request_id(None)
        self._begin(app, interaction, new_id, len(body), InspectorClient(body))
        # The first step of the task makes the request one of the latest: then it can be asked for.
        await asyncio.sleep(0)
        LOGGER.info("the inspector sends the request %s again, as %s", interaction.request.id, new_id)
        return new_id

    async def answer(
        self, app: ASGIApp, interaction: Interaction, body: bytes
    ) -> "AsyncGenerator[str | Sequence[AnswerPiece] | AnswerEnded, None]":
        """Sends a request with this body, and yields the id of the new one, then what its answer says as it comes, and
        how it ends. The request has lost its client when the generator is closed."""
        # Loaded for what is written in the page alone.
        from gateway.server.inspect.sent_answer import SentAnswer

        new_id, answer = request_id(None), SentAnswer(self._secrets)
        client = InspectorClient(body, answer)
        task = self._begin(app, interaction, new_id, len(body), client)
        task.add_done_callback(lambda _: answer.close())
        LOGGER.info("the inspector sends a request that was written in its page, as %s", new_id)
        try:
            # See `send`.
            await asyncio.sleep(0)
            yield new_id
            async for told in answer.told():
                yield told
        finally:
            client.leave()

    def _begin(
        self, app: ASGIApp, interaction: Interaction, new_id: str, size: int, client: InspectorClient
    ) -> asyncio.Task[None]:
        scope = _scope(interaction, new_id, size, client)
        task = asyncio.create_task(_serve(app, scope, client))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def aclose(self) -> None:
        """Ends what is still being sent."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)


def _scope(interaction: Interaction, new_id: str, size: int, client: InspectorClient) -> Scope:
    head = request_head(interaction)
    kept = [(name, value) for name, value in head.headers.items() if name not in _OWN]
    own = {b"host": b"localhost", b"content-length": b"%d" % size, b"x-request-id": new_id.encode()}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": interaction.request.method,
        "path": head.path,
        "raw_path": interaction.request.path.partition("?")[0].encode(),
        "root_path": "",
        "query_string": head.query,
        "headers": [*kept, *own.items()],
        "client": None,
        "server": None,
        # Only the server makes this part of a scope: no client can be the inspector.
        "state": {"client": client},
    }


async def _serve(app: ASGIApp, scope: Scope, client: InspectorClient) -> None:
    await through_asgi(app)(scope, client.receive, client.send)
