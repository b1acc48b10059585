"""Runs a gateway with one model for every wire behind it, and asks it in the words of any dialect."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import httpx
import msgspec

from gateway.core.conversation import Conversation, Json
from gateway.demo.serve import DemoBackend, serve_demo
from gateway.testing.dialect_case import ClientAnswer, DialectCase
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.websocket_client import connected


class Wire(msgspec.Struct, frozen=True):
    """One way in which a backend is reached.

    `demo` is the kind of the demo backend and `entry` the backend's entry in the settings. `marker` begins the marker
    of a fault, and `faults` are its names: `early` before the first event, `late` after some text, `stall` for a
    silence after some text. `length` is the marker of an answer that ends at its token limit, empty where the limit of
    the request does it.
    """

    name: str
    demo: str
    entry: Mapping[str, Json]
    marker: str
    faults: Mapping[str, str]
    length: str = ""

    def fault(self, kind: str) -> str:
        """The marker of this fault."""
        return f"[[{self.marker}:{self.faults[kind]}]]"


_PLAYED: Final = {"early": "error_first", "late": "truncated after=2", "stall": "stall after=2 seconds=60"}
# Of a stream in which two events and a ping precede the text.
_BEGUN: Final = {"early": "error_first", "late": "truncated after=4", "stall": "stall after=4 seconds=60"}
_AGENT: Final = {"early": "llm_unavailable", "late": "disconnect_eof", "stall": "stall"}
_LENGTH: Final = "[[scenario:max_tokens]]"

# Before the first words of its message stand four events.
_ANNOUNCED: Final = {"early": "error_first", "late": "truncated after=6", "stall": "stall after=6 seconds=60"}

CHAT: Final = Wire("chat", "chat", {"adapter": "openai_chat"}, "demo", _PLAYED)
WIRES: Final = (
    CHAT,
    Wire("Responses", "responses", {"adapter": "openai_responses"}, "demo", _ANNOUNCED),
    Wire("Messages", "messages", {"adapter": "anthropic_messages"}, "demo", _BEGUN),
    Wire("generateContent", "gemini", {"adapter": "gemini"}, "demo", _PLAYED),
    Wire("Warp, flattened", "agent", {"adapter": "warp", "encoding": "flatten"}, "scenario", _AGENT, _LENGTH),
    Wire("Warp, structured", "agent", {"adapter": "warp", "encoding": "structured"}, "scenario", _AGENT, _LENGTH),
    Wire("text", "text", {"adapter": "text", "wire": "llama_cpp"}, "demo", _PLAYED),
    Wire("gRPC", "grpc", {"adapter": "proto", "preset": "demo"}, "demo", {**_PLAYED, "early": "unavailable"}),
)


class WireGateway:
    """A gateway and the demo backends behind it. A model has the name of its wire."""

    def __init__(self, gateway: RunningGateway, backends: Mapping[str, DemoBackend]) -> None:
        self.gateway = gateway
        self._backends = backends

    def backend(self, wire: Wire) -> DemoBackend:
        """The demo backend behind a wire."""
        return self._backends[wire.demo]

    async def ask(self, case: DialectCase, conversation: Conversation) -> "Response":
        """One answer, whole or streamed as the conversation says."""
        sent = await self.gateway.client.post(
            case.target(conversation), content=case.write(conversation), headers={"content-type": "application/json"}
        )
        if sent.status_code != 200:
            return Response(sent.status_code, ClientAnswer(error=case.read_error(sent.content)))
        read = case.read_stream if conversation.stream else case.read_whole
        return Response(200, read(sent.content))

    async def ask_over_socket(self, case: DialectCase, conversation: Conversation) -> "Response":
        """One answer of the Responses API over a WebSocket of its own, read as the same events in a stream are. A
        failure before its first event has a status."""
        async with connected(self.gateway) as socket:
            socket.send(_create(case, conversation))
            found = await socket.answer()
        if len(found) == 1 and found[0]["type"] == "error":
            body = msgspec.json.encode({"error": found[0]["error"]})
            return Response(found[0]["status"], ClientAnswer(error=case.read_error(body)))
        lines = [b"event: %b\ndata: %b\n\n" % (one["type"].encode(), msgspec.json.encode(one)) for one in found]
        return Response(200, case.read_stream(b"".join(lines)))

    @asynccontextmanager
    async def asking_over_socket(self, case: DialectCase, conversation: Conversation) -> AsyncIterator[None]:
        """An answer whose first event has arrived; the client leaves at the end of the block."""
        async with connected(self.gateway) as socket:
            socket.send(_create(case, conversation))
            await socket.event()
            yield

    @asynccontextmanager
    async def streaming(self, case: DialectCase, conversation: Conversation) -> AsyncIterator[httpx.Response]:
        """A stream whose first bytes have arrived; the client leaves at the end of the block."""
        request = self.gateway.client.build_request(
            "POST",
            case.target(conversation),
            content=case.write(conversation),
            headers={"content-type": "application/json"},
        )
        response = await self.gateway.client.send(request, stream=True)
        try:
            async with asyncio.timeout(10):
                await anext(response.aiter_raw())
            yield response
        finally:
            await response.aclose()


def _create(case: DialectCase, conversation: Conversation) -> Json:
    fields = msgspec.json.decode(case.write(conversation))
    return {**{name: value for name, value in fields.items() if name != "stream"}, "type": "response.create"}


class Response(msgspec.Struct, frozen=True):
    """A status, and what the client read."""

    status: int
    answer: ClientAnswer


@asynccontextmanager
async def wire_gateway() -> AsyncIterator[WireGateway]:
    """Serve all wires until the block ends."""
    async with AsyncExitStack() as stack:
        backends = {demo: await stack.enter_async_context(serve_demo(demo)) for demo in {wire.demo for wire in WIRES}}
        settings: dict[str, Json] = {
            "backends": {wire.name: {**wire.entry, "base_url": backends[wire.demo].base_url} for wire in WIRES},
            "models": {wire.name: {"backend": wire.name, "name": f"demo-{wire.demo}"} for wire in WIRES},
        }
        yield WireGateway(await stack.enter_async_context(running_gateway(settings)), backends)
