"""Sends the request of a client once more, through the gateway's own front, as a request of the inspector."""

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Scope

from gateway.core.errors import InvalidRequest
from gateway.recording.recording import Interaction
from gateway.recording.route import request_head
from gateway.server.access.api_keys import INSPECTOR
from gateway.server.http.asgi_writer import through_asgi
from gateway.server.log.logger import LOGGER
from gateway.server.log.request_id import request_id

# These belong to the client's connection and to its request; the new request has its own.
_OWN: Final = frozenset({b"content-length", b"host", b"x-request-id"})


class Resend:
    """Requests that are sent again. `allowed` is the setting `inspector.send`."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
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
        task = asyncio.create_task(_serve(app, _scope(interaction, new_id, len(body)), body))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        # The first step of the task makes the request one of the latest: then it can be asked for.
        await asyncio.sleep(0)
        LOGGER.info("the inspector sends the request %s again, as %s", interaction.request.id, new_id)
        return new_id

    async def aclose(self) -> None:
        """Ends what is still being sent."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)


def _scope(interaction: Interaction, new_id: str, size: int) -> Scope:
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
        "state": {"client": INSPECTOR},
    }


async def _serve(app: ASGIApp, scope: Scope, body: bytes) -> None:
    """Serves a request whose client takes the whole answer and keeps nothing of it."""
    unread = [body]

    async def receive() -> Message:
        if not unread:
            await asyncio.Event().wait()  # the client stays to the end
        return {"type": "http.request", "body": unread.pop()}

    async def send(message: Message) -> None:
        """Every part of the answer is kept by the capture of the request."""

    await through_asgi(app)(scope, receive, send)
