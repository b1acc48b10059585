"""Runs a gateway with both demo backends on real sockets, and a model for every way to use them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.demo.player.recorder import RecordedRequest
from gateway.demo.serve import DemoBackend, serve_demo
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.e2e.answers import Answer, read_stream, read_whole

WARP: Final = "adapters.warp.backend:WarpAdapter"
CHAT: Final = "adapters.openai_chat.backend:OpenAIChatAdapter"
# Long enough for a busy machine, short enough for a test that waits for it.
IMPATIENT: Final[dict[str, Json]] = {"connect": 1, "first_byte": 1.2, "idle": 1.2, "total": 8}
# For a whole answer only the total limit holds.
BRIEF: Final[dict[str, Json]] = {**IMPATIENT, "total": 2.4}

Fields: TypeAlias = Mapping[str, object]
WHOLE: Final[Fields] = {}
STREAMED: Final[Fields] = {"stream": True, "stream_options": {"include_usage": True}}

# A model has the name of its backend entry.
AGENTS: Final[Mapping[str, dict[str, Json]]] = {
    "flat": {},
    "structured": {"encoding": "structured"},
    "flat-stream": {"rollback": "stream"},
    "structured-stream": {"encoding": "structured", "rollback": "stream"},
    "hex": {"accept_hex": True},
    "lenient": {"strict_frames": False},
    "expose": {"native_tools": "expose"},
    "silent": {"reasoning": False},
    "insists": {"empty_answer": "error"},
    "impatient": {"timeouts": IMPATIENT},
    "structured-impatient": {"encoding": "structured", "timeouts": IMPATIENT},
    "brief": {"timeouts": BRIEF},
    "structured-brief": {"encoding": "structured", "timeouts": BRIEF},
}
POLICIES: Final[Mapping[str, tuple[str, dict[str, Json]]]] = {
    "flat-strict": ("flat", {"repair": "strict"}),
    "structured-strict": ("structured", {"repair": "strict"}),
    "chat-strict": ("chat", {"repair": "strict"}),
    "flat-short": ("flat", {"max_history_messages": 4}),
    "structured-short": ("structured", {"max_history_messages": 4}),
}


class DemoGateway:
    """The gateway and the backends behind it."""

    def __init__(self, gateway: RunningGateway, agent: DemoBackend, chat: DemoBackend) -> None:
        self.gateway = gateway
        self.agent = agent
        self.chat = chat

    async def ask(
        self,
        model: str,
        messages: Sequence[JsonObject],
        fields: Fields = WHOLE,
        *,
        tools: Sequence[JsonObject] = (),
        explain: bool = False,
    ) -> Answer:
        """One answer, streamed or whole as the fields say, read by a reader of the tests' own."""
        body = {"model": model, "messages": messages, **({"tools": tools} if tools else {}), **fields}
        headers = {"x-dragoman-explain": "1"} if explain else {}
        response = await self.gateway.client.post("/v1/chat/completions", json=body, headers=headers)
        streamed = response.headers["content-type"].startswith("text/event-stream")
        assert streamed == (fields.get("stream") is True and response.status_code == 200), response.text
        return read_stream(response) if streamed else read_whole(response)


@asynccontextmanager
async def demo_gateway(
    agents: Mapping[str, Mapping[str, Json]] = AGENTS,
    policies: Mapping[str, tuple[str, Mapping[str, Json]]] = POLICIES,
    **top: Json,
) -> AsyncIterator[DemoGateway]:
    """Serve until the block ends; `top` holds further settings."""
    async with serve_demo("agent") as agent, serve_demo("chat") as chat:
        backends: dict[str, Json] = {
            name: {"adapter": WARP, "base_url": agent.base_url, **options} for name, options in agents.items()
        }
        backends["chat"] = {"adapter": CHAT, "base_url": chat.base_url}
        backends["chat-impatient"] = {"adapter": CHAT, "base_url": chat.base_url, "timeouts": dict(IMPATIENT)}
        models: dict[str, Json] = {
            name: {"backend": name, "name": "demo-chat" if "chat" in name else "auto"} for name in backends
        }
        models |= {
            name: {"backend": backend, "name": "auto", **policy}
            for name, (backend, policy) in policies.items()
            if backend in backends
        }
        settings: dict[str, Json] = {
            "backends": backends,
            "models": models,
            **top,
        }
        async with running_gateway(settings) as gateway:
            yield DemoGateway(gateway, agent, chat)


async def busy(backend: DemoBackend) -> None:
    """Wait until a backend has a running request, and 50 ms more."""
    async with asyncio.timeout(5):
        while not backend.active:  # noqa: ASYNC110 (the backend has no event for it)
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)


def user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def body_of(request: RecordedRequest) -> dict[str, Json]:
    """What a backend was sent, as JSON."""
    assert isinstance(request.summary, dict)
    return dict(request.summary)


def query_of(request: RecordedRequest) -> str:
    """The one text that an agent was asked."""
    (only,) = inputs_of(request)
    return only.user_query.query


def inputs_of(request: RecordedRequest) -> Sequence["Given"]:
    """What an agent was given beside its log: questions and results, in order."""
    return msgspec.convert(body_of(request)["input"], _Input).user_inputs.inputs


class Query(msgspec.Struct, frozen=True):
    query: str = ""


class ResultGiven(msgspec.Struct, frozen=True):
    tool_call_id: str = ""


class Given(msgspec.Struct, frozen=True):
    user_query: Query = Query()
    tool_call_result: ResultGiven | None = None


class _Inputs(msgspec.Struct, frozen=True):
    inputs: Sequence[Given] = ()


class _Input(msgspec.Struct, frozen=True):
    user_inputs: _Inputs = _Inputs()
