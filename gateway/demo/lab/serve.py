"""Serves the laboratory's APIs on one loopback port, for one run of a client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.routing import Route, Router

from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.playing import Faults
from gateway.demo.lab.apis import LAB_APIS, LabApi, fault_of
from gateway.demo.lab.event import Api, LabEvent
from gateway.demo.lab.model import LabModel
from gateway.demo.lab.request import Seen, read_seen
from gateway.demo.player.connection import Http1Server
from gateway.demo.player.endpoint import Endpoint, Handler, Refused, get
from gateway.demo.player.playback import Response
from gateway.demo.player.recorder import Recorder
from gateway.demo.player.websocket_connection import OVER_WEBSOCKET, RefusedUpgrade, WebSocketConnection
from gateway.demo.scripted_model.dialogue import Dialogue, Reply

HOST: Final = "127.0.0.1"


class LabServer:
    """Answers one run of a client. `event` strikes in it, None: nothing does. `tools`: the client is known to offer
    tools, so that a request without any is made beside its conversation. `seen` are the requests, oldest first."""

    def __init__(self, folder: PurePath, event: LabEvent | None, silence: float, *, tools: bool, name: str) -> None:
        self.base_url = ""
        self.seen: list[Seen] = []
        self._model = LabModel(folder)
        self._event = event
        self._silence = silence
        self._tools = tools
        self._name = name

    def routes(self) -> list[Route]:
        """Returns the routes of all APIs; a path that several of them have is that of the first."""
        recorder = Recorder()
        found: dict[str, Route] = {"/v1/models": get("/v1/models", self._models)}
        for name, api in LAB_APIS.items():
            struck = self._struck_handlers(name, api, recorder)
            for route in api.routes(recorder, Faults({}, model=self._model)):
                if isinstance(route.endpoint, Endpoint) and route.path in struck:
                    route.endpoint.handler = self._handler(name, api, route.endpoint.handler, struck[route.path])
                if not route.path.startswith("/__"):
                    found.setdefault(route.path, route)
        return list(found.values())

    def _models(self) -> Json:
        listed: Json = [{"id": self._name, "object": "model", "created": 0, "owned_by": "lab", "type": "model"}]
        return {"object": "list", "data": listed, "models": []}

    def _struck_handlers(self, name: Api, api: LabApi, recorder: Recorder) -> dict[str, Handler]:
        """Returns the handlers of the requests with a body by their paths, with the event in each of their answers."""
        fault = None if self._event is None or name not in self._event.faults else self._fault(name)
        routes = api.routes(recorder, Faults({}, fault, self._struck_reply))
        endpoints = ((route.path, route.endpoint) for route in routes if "POST" in (route.methods or ()))
        return {path: endpoint.handler for path, endpoint in endpoints if isinstance(endpoint, Endpoint)}

    def _fault(self, name: Api) -> Fault[Any] | None:
        assert self._event is not None
        return fault_of(self._event, name, self._silence)

    def _struck_reply(self, dialogue: Dialogue) -> Reply:
        reply = self._model(dialogue)
        return reply if self._event is None or self._event.reply is None else self._event.reply(reply)

    def _handler(self, name: Api, api: LabApi, regular: Handler, struck: Handler) -> Handler:
        """Returns a handler that answers a request with the event where it strikes, and as usual elsewhere."""

        async def answer(request: Request) -> Response:
            if not api.paths.fullmatch(request.url.path):
                return await regular(request)
            body = _object(await request.body())
            streams = body.get("stream") is True or "streamGenerateContent" in request.url.path
            try:
                dialogue = api.dialogue(body)
            except Refused as error:
                self.seen.append(Seen(name, streams, refused=error.message))
                return await regular(request)
            seen = read_seen(name, dialogue, streams, OVER_WEBSOCKET in request.scope.get("extensions", ()))
            if self._tools and not dialogue.tools:
                seen = msgspec.structs.replace(seen, own=False)
            seen = msgspec.structs.replace(seen, struck=self._strikes(seen, dialogue, body))
            self.seen.append(seen)
            return await (struck if seen.struck else regular)(request)

        return answer

    def _strikes(self, seen: Seen, dialogue: Dialogue, body: JsonObject) -> bool:
        """Returns whether the answer of a request is that of the event."""
        event = self._event
        if (
            event is None
            or seen.api not in event.faults
            or (event.streamed and not seen.streams)
            or (event.framed and seen.websocket)
        ):
            return False
        if event.always:
            fault = self._fault(seen.api)
            # What refuses some requests strikes these alone.
            return fault is None or not fault.has_refusals or fault.refuses(body) is not None
        kind = "call" if self._model(dialogue).calls else "text"
        return seen.own and event.place in (kind, "first") and not any(one.struck for one in self.seen)


@asynccontextmanager
async def serve_lab(
    folder: PurePath, event: LabEvent | None, silence: float, *, tools: bool, name: str, websocket: bool
) -> AsyncIterator[LabServer]:
    """Serves a run of a client until the block ends. `websocket`: the Responses API is there over a WebSocket, too."""
    lab = LabServer(folder, event, silence, tools=tools, name=name)
    upgraded = WebSocketConnection if websocket else RefusedUpgrade
    server = Http1Server(Router(lab.routes(), redirect_slashes=False), upgraded)
    listening = await asyncio.get_running_loop().create_server(server.connect, HOST, 0)
    try:
        port = listening.sockets[0].getsockname()[1]
        lab.base_url = f"http://{HOST}:{port}"
        yield lab
    finally:
        listening.close()
        for connection in server.connections():
            connection.transport.abort()
            await connection.lost.wait()
        if server.tasks:
            await asyncio.wait(server.tasks)
        await listening.wait_closed()


def _object(body: bytes) -> JsonObject:
    try:
        decoded: JsonObject = msgspec.json.decode(body, type=dict)
    except (ValueError, RecursionError):
        return {}
    return decoded
