"""A gateway whose model `m` has candidates, each on a scripted backend of its own."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeAlias

from gateway.core.conversation import Json
from gateway.testing.faulty import END, HEAD, Connection, FaultyBackend, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway

Play: TypeAlias = Callable[[Connection], Awaitable[None]]

PATIENT: Final[dict[str, Json]] = {"connect": 10, "first_byte": 10, "idle": 10, "total": 30}
USAGE: Final[dict[str, Json]] = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def sse(document: Json) -> bytes:
    """An event of a chat backend."""
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def said(text: str, finish: str | None = None) -> bytes:
    """A chunk of a chat backend."""
    choice: Json = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    return sse({"id": f"of-{text}", "object": "chat.completion.chunk", "model": "inner", "choices": [choice]})


def says(text: str) -> Play:
    """A backend that answers with this text, in words, whole or as a stream."""

    async def play(connection: Connection) -> None:
        if json.loads(connection.body).get("stream"):
            words = [chunk(said(word)) for word in text.split()]
            await connection.send(HEAD, *words, chunk(said("", "stop")), chunk(b"data: [DONE]\n\n"), END)
            return
        message: Json = {"role": "assistant", "content": "".join(text.split())}
        body = {"id": "x", "object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}]}
        data = json.dumps({**body, "usage": USAGE}).encode()
        await connection.send(answer("200 OK", data, b"content-type: application/json"))

    return play


def refuses(status: str, message: str = "no", code: str | None = None, *headers: bytes) -> Play:
    """A backend that answers with this status."""
    body = json.dumps({"error": {"message": message, "type": "x", "code": code}}).encode()

    async def play(connection: Connection) -> None:
        await connection.send(answer(status, body, b"content-type: application/json", *headers))

    return play


def breaks_off(*pieces: bytes) -> Play:
    """A backend that begins a stream with these pieces, and resets the connection."""

    async def play(connection: Connection) -> None:
        await connection.send(HEAD, *[chunk(piece) for piece in pieces])
        connection.reset()

    return play


async def is_silent(connection: Connection) -> None:
    """A backend that says nothing."""
    await connection.gone()


OVERLOADED: Final = refuses("503 Service Unavailable")
# The first chunk of many backends, which says nothing yet.
ROLE: Final = sse(
    {"id": "a", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}
)


@asynccontextmanager
async def candidates_gateway(
    plays: Mapping[str, Play],
    model: Mapping[str, Json] | None = None,
    timeouts: Mapping[str, Json] = PATIENT,
    models: Mapping[str, Mapping[str, Json]] = {},
    backends: Mapping[str, Mapping[str, Json]] = {},
    **settings: Json,
) -> AsyncIterator[tuple[RunningGateway, dict[str, FaultyBackend]]]:
    """A gateway with a model on a backend of the same name for each play. The first one has `model`, as a rule its
    candidates, in its entry: without it, all others. `models` and `backends` are added to the entries."""
    async with AsyncExitStack() as stack:
        running = {name: await stack.enter_async_context(faulty_backend(play)) for name, play in plays.items()}
        first, *others = plays
        entries: dict[str, Any] = {name: {"backend": name, **models.get(name, {})} for name in plays}
        entries[first] |= {"candidates": others} if model is None else dict(model)
        listed: dict[str, Json] = {
            name: {
                "adapter": "openai_chat",
                "base_url": backend.base_url,
                "timeouts": dict(timeouts),
                **backends.get(name, {}),
            }
            for name, backend in running.items()
        }
        given: dict[str, Json] = {"backends": listed, "models": entries, **settings}
        yield await stack.enter_async_context(running_gateway(given)), running


def text_of(stream: str) -> str:
    """What a stream to a chat client says."""
    deltas = [choice["delta"] for one in chunks(stream) for choice in one.get("choices", ())]
    return "".join(delta.get("content") or "" for delta in deltas)


def chunks(stream: str) -> list[Any]:
    """The chunks of a stream to a chat client."""
    data = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")]
    return [json.loads(one) for one in data]


def asked(backends: Mapping[str, FaultyBackend]) -> dict[str, int]:
    """How often each backend was asked."""
    return {name: len(backend.seen) for name, backend in backends.items() if backend.seen}


def bodies(backend: FaultyBackend) -> Sequence[Any]:
    """The bodies that the backend got."""
    return [json.loads(body) for _, body in backend.seen]


async def metric(gateway: RunningGateway, line: str) -> bool:
    """Whether the metrics have this line."""
    return line in (await gateway.client.get("/metrics")).text.splitlines()
